#include "cm/cm_id.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "environment.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

// librdmacm returns -1 and sets errno; some paths return a negative or positive errno themselves.
int ErrnoOf(int result) { return result == 0 ? 0 : result == -1 ? errno : std::abs(result); }

}  // namespace

CmId::CmId(Environment* environment, std::shared_ptr<EventChannel> channel, rdma_cm_id* id, Role role)
    : Object(kKind), environment_(environment), channel_(std::move(channel)), id_(id), role_(role) {}

CmId::~CmId() { DestroyVerbs(); }

int CmId::Bind(const sockaddr_storage& address) {
  sockaddr_storage copy = address;
  return ErrnoOf(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&copy)));
}

int CmId::ResolveAddress(sockaddr_storage* source, sockaddr_storage* destination, int timeout) {
  if (role_ != Role::kNew) return EINVAL;
  return ErrnoOf(rdma_resolve_addr(id_, reinterpret_cast<sockaddr*>(source),
                                   reinterpret_cast<sockaddr*>(destination), timeout));
}

int CmId::ResolveRoute(int timeout) {
  // librdmacm looks at the device without checking that there is one.
  if (role_ != Role::kNew || id_->verbs == nullptr) return EINVAL;
  return ErrnoOf(rdma_resolve_route(id_, timeout));
}

int CmId::Listen(int backlog) {
  if (role_ != Role::kNew && role_ != Role::kListening) return EINVAL;
  const int error = ErrnoOf(rdma_listen(id_, backlog));
  if (error == 0) role_ = Role::kListening;
  return error;
}

int CmId::CreateQueuePair(const Context& context, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (role_ != Role::kNew && role_ != Role::kRequested) return EINVAL;
  if (id_->verbs == nullptr || id_->verbs != context.verbs() || id_->qp != nullptr || calls_ > 0)
    return EINVAL;
  return ErrnoOf(rdma_create_qp(id_, pd, attributes));
}

int CmId::Connect(const rdma_conn_param& parameters, std::vector<uint8_t> private_data,
                  std::function<void(int)> done) {
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  // Without a queue pair siw warns in the kernel's log; without a device librdmacm faults.
  if (role_ != Role::kNew || id_->verbs == nullptr || queue_pair == nullptr || queue_pair->closing())
    return EINVAL;
  role_ = Role::kConnecting;
  initiator_depth_ = parameters.initiator_depth;
  calls_++;
  environment_->RunInPool(
      [self = shared_from_this(), queue_pair, parameters, private_data = std::move(private_data)] {
        rdma_conn_param copy = parameters;
        copy.private_data = private_data.empty() ? nullptr : private_data.data();
        copy.private_data_len = static_cast<uint8_t>(private_data.size());
        return ErrnoOf(rdma_connect(self->id_, &copy));
      },
      [this, self = shared_from_this(), done = std::move(done)](int error) {
        if (error != 0 && role_ == Role::kConnecting) role_ = Role::kEnded;
        done(error);
        EndCall();
      });
  return 0;
}

int CmId::Accept(rdma_conn_param* parameters) {
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  if (role_ != Role::kRequested || queue_pair == nullptr || queue_pair->closing()) return EINVAL;
  const int error = ErrnoOf(rdma_accept(id_, parameters));
  if (error != 0) {
    role_ = Role::kEnded;
    return error;
  }
  role_ = Role::kAccepted;
  // The device takes sends from here on. On iWARP the protocol asks the responder to wait for the initiator.
  queue_pair->Connected(parameters->initiator_depth);
  return 0;
}

int CmId::Reject(const std::vector<uint8_t>& private_data) {
  if (role_ != Role::kRequested) return EINVAL;
  role_ = Role::kRejected;
  return ErrnoOf(rdma_reject(id_, private_data.empty() ? nullptr : private_data.data(),
                             static_cast<uint8_t>(private_data.size())));
}

int CmId::Disconnect() {
  if (id_->verbs == nullptr) return 0;
  switch (role_) {
    case Role::kConnecting:
    case Role::kAccepted:
      DisconnectWhenAnswered();
      return 0;
    case Role::kConnected:
    case Role::kEnded: {
      const int error = ErrnoOf(rdma_disconnect(id_));
      // The peer was faster.
      return error == EINVAL || error == ECONNRESET || error == ENOTCONN ? 0 : error;
    }
    default:
      return ENOTCONN;
  }
}

// Until the peer has answered, iw_cm_disconnect() in the kernel waits: 10 s on siw for a peer that never
// does.
void CmId::DisconnectWhenAnswered() {
  if (disconnecting_) return;
  disconnecting_ = true;
  WhenIdle([this, self = shared_from_this()] {
    if (closing_ || role_ == Role::kEnded) return;
    calls_++;
    environment_->RunInPool([self] { return ErrnoOf(rdma_disconnect(self->id_)); },
                            [this, self](int) { EndCall(); });
  });
}

void CmId::Apply(rdma_cm_event_type type, const rdma_conn_param& parameters) {
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  switch (type) {
    case RDMA_CM_EVENT_ESTABLISHED: {
      if (queue_pair != nullptr) {
        // siw has the two depths the wrong way round here.
        const uint32_t depth =
            queue_pair->siw() ? parameters.responder_resources : parameters.initiator_depth;
        queue_pair->Connected(depth == 0 ? 0 : initiator_depth_);
      }
      role_ = Role::kConnected;
      break;
    }
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      if (queue_pair != nullptr) queue_pair->Disconnected();
      if (role_ != Role::kListening && role_ != Role::kRequested) role_ = Role::kEnded;
      break;
    default:
      break;
  }
}

void CmId::EndCall() {
  calls_--;
  while (calls_ == 0 && !when_idle_.empty()) {
    const std::function<void()> action = std::move(when_idle_.front());
    when_idle_.pop_front();
    action();
  }
}

void CmId::WhenIdle(std::function<void()> action) {
  if (calls_ > 0) {
    when_idle_.push_back(std::move(action));
  } else {
    action();
  }
}

void CmId::Destroy(std::function<void()> then) {
  closing_ = true;
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  if (queue_pair != nullptr) {
    queue_pair->Destroy([this, self = shared_from_this(), then = std::move(then)]() mutable {
      DestroyAfterQueuePair(std::move(then));
    });
  } else {
    DestroyAfterQueuePair(std::move(then));
  }
}

void CmId::DestroyAfterQueuePair(std::function<void()> then) {
  WhenIdle([this, self = shared_from_this(), then = std::move(then)]() mutable {
    environment_->RunInPool(
        [self] {
          self->DestroyVerbs();
          return 0;
        },
        [this, self, then = std::move(then)](int) {
          environment_->handles().Remove(handle());
          then();
        });
  });
}

void CmId::DestroyVerbs() {
  if (id_ == nullptr) return;
  if (role_ == Role::kRequested) rdma_reject(id_, nullptr, 0);
  rdma_destroy_id(id_);
  id_ = nullptr;
}

}  // namespace node_rdma
