/*
 * Counts what a passive side that speaks too early destroys, the reason for peer-to-peer connect: over iWARP,
 * MPA (RFC 5044, section 7.1) forbids the responder to send before it has received the initiator's first
 * FPDU.
 *
 *   lost-connects server ADDRESS WHEN COUNT
 *   lost-connects client ADDRESS WHEN COUNT
 *
 * COUNT connections, one after the other; on each the server sends one message. WHEN tells at which moment:
 * `accept`, as soon as rdma_accept() has returned; `established`, on its own ESTABLISHED; `receive`, the
 * control, when it has received a message that the client sends first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 7471, SIZE = 64, TIMEOUT_MS = 2000 };

enum when { AT_ACCEPT, AT_ESTABLISHED, AFTER_RECEIVE };

struct connection {
  struct rdma_cm_id* id;
  struct ibv_mr* memory;
  char sent[SIZE];
  char received[SIZE];
};

static void die(const char* format, ...) {
  int error = errno;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, ": %s\n", strerror(error));
  exit(1);
}

/* A queue pair with completion queues of its own, and one receive posted. */
static struct connection* prepare(struct rdma_cm_id* id) {
  struct connection* connection = calloc(1, sizeof *connection);
  struct ibv_qp_init_attr attributes = {
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
  };
  if (connection == NULL || rdma_create_qp(id, NULL, &attributes)) die("rdma_create_qp");
  connection->id = id;
  connection->memory =
      rdma_reg_msgs(id, connection->sent, sizeof connection->sent + sizeof connection->received);
  if (connection->memory == NULL) die("rdma_reg_msgs");
  if (rdma_post_recv(id, NULL, connection->received, SIZE, connection->memory)) die("rdma_post_recv");
  id->context = connection;
  return connection;
}

static void send_message(struct connection* connection) {
  snprintf(connection->sent, SIZE, "the passive side speaks");
  /* A connection that is gone by now refuses it: counted, like every other loss, at the client. */
  rdma_post_send(connection->id, NULL, connection->sent, SIZE, connection->memory, 0);
}

static int successes(struct ibv_cq* queue) {
  struct ibv_wc completion;
  int count = 0;
  while (ibv_poll_cq(queue, 1, &completion) > 0) count += completion.status == IBV_WC_SUCCESS;
  return count;
}

static void destroy(struct connection* connection) {
  struct rdma_cm_id* id = connection->id;
  rdma_destroy_qp(id);
  rdma_dereg_mr(connection->memory);
  rdma_destroy_id(id);
  free(connection);
}

/* Copies the event and acknowledges it: librdmacm waits for that before it destroys an id. */
static struct rdma_cm_event next_event(struct rdma_event_channel* channel) {
  struct rdma_cm_event *event, copy;
  if (rdma_get_cm_event(channel, &event)) die("rdma_get_cm_event");
  copy = *event;
  rdma_ack_cm_event(event);
  return copy;
}

static struct rdma_conn_param depths(void) {
  return (struct rdma_conn_param){
      .initiator_depth = 1, .responder_resources = 1, .retry_count = 7, .rnr_retry_count = 7};
}

static void serve(struct sockaddr_in* address, enum when when, int count) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* listener;
  if (channel == NULL || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP)) die("rdma_create_id");
  if (rdma_bind_addr(listener, (struct sockaddr*)address)) die("rdma_bind_addr");
  if (rdma_listen(listener, 16)) die("rdma_listen");
  puts("listening");
  fflush(stdout);

  int established = 0, sent = 0;
  for (int ended = 0; ended < count;) {
    struct rdma_cm_event event = next_event(channel);
    struct connection* connection = event.id->context;
    struct ibv_wc completion;
    switch (event.event) {
      case RDMA_CM_EVENT_CONNECT_REQUEST: {
        struct rdma_conn_param parameters = depths();
        connection = prepare(event.id);
        if (rdma_accept(event.id, &parameters)) {
          destroy(connection);
          ended++;
        } else if (when == AT_ACCEPT) {
          send_message(connection);
        }
        break;
      }
      case RDMA_CM_EVENT_ESTABLISHED:
        established++;
        if (when == AT_ESTABLISHED) send_message(connection);
        if (when == AFTER_RECEIVE && rdma_get_recv_comp(event.id, &completion) > 0 &&
            completion.status == IBV_WC_SUCCESS)
          send_message(connection);
        break;
      default: /* DISCONNECTED, or one of the ways not to become connected */
        sent += successes(event.id->send_cq);
        rdma_disconnect(event.id);
        destroy(connection);
        ended++;
    }
  }
  printf("server: %d requests, %d established, %d sends completed with success\n", count, established, sent);
}

static void expect(struct rdma_event_channel* channel, enum rdma_cm_event_type wanted) {
  struct rdma_cm_event event = next_event(channel);
  if (event.event != wanted) die("%s, status %d", rdma_event_str(event.event), event.status);
}

/* Waits for the server's message, or for the end of the connection. */
static int receives(struct connection* connection) {
  struct rdma_cm_id* id = connection->id;
  struct pollfd descriptors[] = {{.fd = id->recv_cq_channel->fd, .events = POLLIN},
                                 {.fd = id->channel->fd, .events = POLLIN}};
  if (ibv_req_notify_cq(id->recv_cq, 0)) die("ibv_req_notify_cq");
  int received = successes(id->recv_cq);
  if (received == 0 && poll(descriptors, 2, TIMEOUT_MS) > 0) received = successes(id->recv_cq);
  return received;
}

static void connect_to(struct sockaddr_in* address, enum when when, int count) {
  int failed = 0, silent = 0, heard = 0, status = 0;
  for (int i = 0; i < count; i++) {
    struct rdma_event_channel* channel = rdma_create_event_channel();
    struct rdma_cm_id* id;
    if (channel == NULL || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) die("rdma_create_id");
    if (rdma_resolve_addr(id, NULL, (struct sockaddr*)address, TIMEOUT_MS)) die("rdma_resolve_addr");
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(id, TIMEOUT_MS)) die("rdma_resolve_route");
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    struct connection* connection = prepare(id);
    struct rdma_conn_param parameters = depths();
    if (rdma_connect(id, &parameters)) die("rdma_connect");
    struct rdma_cm_event event = next_event(channel);
    if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
      if (when == AFTER_RECEIVE) send_message(connection);
      if (receives(connection))
        heard++;
      else
        silent++;
      rdma_disconnect(id);
    } else {
      failed++;
      status = event.status;
    }
    destroy(connection);
    rdma_destroy_event_channel(channel);
  }
  printf("client: %d connects, %d failed", count, failed);
  if (failed) printf(" (CONNECT_ERROR, the last with status %d)", status);
  printf(", %d established without the message, %d messages received: %d of %d lost\n", silent, heard,
         count - heard, count);
}

int main(int argc, char** argv) {
  static const char* moments[] = {"accept", "established", "receive"};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  int when = 0;
  while (argc == 5 && when < 3 && strcmp(argv[3], moments[when])) when++;
  int server = argc == 5 && !strcmp(argv[1], "server");
  int client = argc == 5 && !strcmp(argv[1], "client");
  if ((!server && !client) || when == 3 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1 ||
      atoi(argv[4]) < 1) {
    fprintf(stderr, "Usage: %s server|client ADDRESS accept|established|receive COUNT\n", argv[0]);
    return 2;
  }
  if (server)
    serve(&address, when, atoi(argv[4]));
  else
    connect_to(&address, when, atoi(argv[4]));
  return 0;
}
