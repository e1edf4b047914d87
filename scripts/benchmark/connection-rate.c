/*
 * Connections per second of a C program that makes the calls of connection-rate.ts, and what an idle one takes.
 *
 *   connection-rate server ADDRESS            prints the port, serves until its input ends
 *   connection-rate rate ADDRESS PORT COUNT   prints connections per second
 *   connection-rate idle ADDRESS PORT COUNT   prints KiB of resident memory per connection
 *
 * The server gives each connection the queues that `idle` asks for: a depth of 130 and 66, 66 receives of 8196 bytes.
 */
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <poll.h>

enum { DEPTH = 16, SENDS = 130, RECEIVES = 66, MESSAGE = 8196 };

static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void check(int failed, const char *what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

/* As many completion queues as it takes: no more than the connections of one fit into each. */
static void create_queue_pair(struct rdma_cm_id *id, int sends, int receives, int per_queue) {
  static int on_queue;
  if (pd == NULL) check((pd = ibv_alloc_pd(id->verbs)) == NULL, "ibv_alloc_pd");
  if (cq == NULL || on_queue == per_queue) {
    check((cq = ibv_create_cq(id->verbs, (sends + receives) * per_queue, NULL, NULL, 0)) == NULL, "ibv_create_cq");
    on_queue = 0;
  }
  on_queue++;
  struct ibv_qp_init_attr attributes = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  attributes.cap.max_send_wr = sends;
  attributes.cap.max_recv_wr = receives;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 2;
  check(rdma_create_qp(id, pd, &attributes), "rdma_create_qp");
}

static void post_receives(struct rdma_cm_id *id) {
  const size_t length = (size_t)RECEIVES * ((MESSAGE + 63) / 64 * 64);
  char *memory = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
  check(memory == NULL, "aligned_alloc");
  struct ibv_mr *region = ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
  check(region == NULL, "ibv_reg_mr");
  for (int i = 0; i < RECEIVES; i++) {
    struct ibv_sge sge = {(uintptr_t)memory + i * (length / RECEIVES), MESSAGE, region->lkey};
    struct ibv_recv_wr request = {.sg_list = &sge, .num_sge = 1}, *bad;
    check(ibv_post_recv(id->qp, &request, &bad), "ibv_post_recv");
  }
}

/* The next event: its type; the id that it is for. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id **id) {
  struct rdma_cm_event *event;
  check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
  const enum rdma_cm_event_type type = event->event;
  *id = event->id;
  rdma_ack_cm_event(event);
  return type;
}

static void expect(enum rdma_cm_event_type wanted) {
  struct rdma_cm_id *id;
  const enum rdma_cm_event_type type = next_event(&id);
  if (type == wanted) return;
  fprintf(stderr, "%s instead of %s\n", rdma_event_str(type), rdma_event_str(wanted));
  exit(1);
}

static void serve(struct sockaddr_in *address) {
  struct rdma_cm_id *listener, *id;
  check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
  check(rdma_bind_addr(listener, (struct sockaddr *)address), "rdma_bind_addr");
  check(rdma_listen(listener, 128), "rdma_listen");
  printf("%d\n", ntohs(rdma_get_src_port(listener)));
  fflush(stdout);
  struct pollfd descriptors[] = {{STDIN_FILENO, POLLIN, 0}, {channel->fd, POLLIN, 0}};
  struct rdma_conn_param parameters = {.responder_resources = 1, .initiator_depth = 1};
  while (poll(descriptors, 2, -1) > 0 && descriptors[0].revents == 0) {
    switch (next_event(&id)) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        create_queue_pair(id, DEPTH, DEPTH, 512);
        check(rdma_accept(id, &parameters), "rdma_accept");
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id);
        rdma_destroy_qp(id);
        rdma_destroy_id(id);
        break;
      default:
        break;
    }
  }
}

static struct rdma_cm_id *connect_to(struct sockaddr_in *address, int idle) {
  struct rdma_cm_id *id;
  struct rdma_conn_param parameters = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
  check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
  check(rdma_resolve_addr(id, NULL, (struct sockaddr *)address, 2000), "rdma_resolve_addr");
  expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  check(rdma_resolve_route(id, 2000), "rdma_resolve_route");
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  create_queue_pair(id, idle ? SENDS : DEPTH, idle ? RECEIVES : DEPTH, idle ? 20 : 64);
  if (idle) post_receives(id);
  check(rdma_connect(id, &parameters), "rdma_connect");
  expect(RDMA_CM_EVENT_ESTABLISHED);
  return id;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

static void connect_and_close(struct sockaddr_in *address) {
  struct rdma_cm_id *id = connect_to(address, 0);
  rdma_disconnect(id);
  rdma_destroy_qp(id);
  rdma_destroy_id(id);
}

static void measure_rate(struct sockaddr_in *address, int count) {
  connect_and_close(address);
  const double start = seconds();
  for (int i = 0; i < count; i++) connect_and_close(address);
  printf("%f\n", count / (seconds() - start));
}

static long resident(void) {
  char line[256];
  long size = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &size);
  fclose(status);
  return size;
}

static void measure_idle(struct sockaddr_in *address, int count) {
  connect_to(address, 1);
  const long before = resident();
  for (int i = 0; i < count; i++) connect_to(address, 1);
  printf("%f\n", (double)(resident() - before) / count);
}

int main(int argc, char **argv) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  if (argc < 3 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) return 2;
  check((channel = rdma_create_event_channel()) == NULL, "rdma_create_event_channel");
  if (strcmp(argv[1], "server") == 0) {
    serve(&address);
    return 0;
  }
  if (argc < 5) return 2;
  address.sin_port = htons(atoi(argv[3]));
  if (strcmp(argv[1], "rate") == 0) measure_rate(&address, atoi(argv[4]));
  else measure_idle(&address, atoi(argv[4]));
  return 0;
}
