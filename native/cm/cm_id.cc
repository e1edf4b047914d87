#include "cm/cm_id.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "environment.h"
#include "support/result.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

CmId::CmId(Environment* environment, std::shared_ptr<EventChannel> channel, rdma_cm_id* id, Role role)
    : Object(kKind), environment_(environment), channel_(std::move(channel)), id_(id), role_(role) {}

CmId::~CmId() { DestroyVerbs(); }

int CmId::SetOption(int level, int name, const void* value, size_t size) {
  return ErrnoOf(rdma_set_option(id_, level, name, const_cast<void*>(value), size));
}

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
  // The kernel would listen for iWARP connections on it, and then take their events for those of datagrams.
  if (iwarp() && id_->qp_type == IBV_QPT_UD) return EOPNOTSUPP;
  const int error = ErrnoOf(rdma_listen(id_, backlog));
  if (error == 0) role_ = Role::kListening;
  return error;
}

int CmId::Migrate(const std::shared_ptr<EventChannel>& channel) {
  // The kernel makes it wait for a call that is under way. It waits for the events that were read as well,
  // but those are acknowledged as soon as they are read.
  if (calls_ > 0) return EBUSY;
  const int error = ErrnoOf(rdma_migrate_id(id_, channel->channel()));
  if (error == 0) channel_ = channel;
  return error;
}

int CmId::CreateQueuePair(const Context& context, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (role_ != Role::kNew && role_ != Role::kRequested) return EINVAL;
  if (id_->verbs == nullptr || id_->verbs != context.verbs() || id_->qp != nullptr || calls_ > 0)
    return EINVAL;
  // librdmacm brings it up as one of the id's type.
  if (attributes->qp_type != id_->qp_type) return EINVAL;
  return ErrnoOf(rdma_create_qp(id_, pd, attributes));
}

std::shared_ptr<QueuePair> CmId::ConnectedQueuePair() const {
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  return queue_pair != nullptr ? queue_pair : own_queue_pair_.lock();
}

int CmId::CheckOwn(const QueuePair& own) const {
  // An iWARP connection takes its queue pair through the states by itself.
  if (iwarp()) return EOPNOTSUPP;
  if (!queue_pair_.expired() || own.has_cm_id() || own.protection_domain()->context()->verbs() != id_->verbs)
    return EINVAL;
  return 0;
}

int CmId::InitialAttributes(ibv_qp_attr* attributes, int* mask) {
  if (id_->verbs == nullptr) return EINVAL;
  if (calls_ > 0) return EBUSY;
  return ErrnoOf(rdma_init_qp_attr(id_, attributes, mask));
}

int CmId::Connect(const rdma_conn_param& parameters, std::vector<uint8_t> private_data,
                  const std::shared_ptr<QueuePair>& own, std::function<void(int)> done) {
  const std::shared_ptr<QueuePair> queue_pair = own != nullptr ? own : queue_pair_.lock();
  // Without a queue pair siw warns in the kernel's log; without a device librdmacm faults.
  if (role_ != Role::kNew || id_->verbs == nullptr || queue_pair == nullptr || queue_pair->closing())
    return EINVAL;
  if (own != nullptr) {
    const int error = CheckOwn(*own);
    if (error != 0) return error;
    own_queue_pair_ = own;
  }
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

int CmId::Accept(rdma_conn_param* parameters, const std::shared_ptr<QueuePair>& own) {
  const std::shared_ptr<QueuePair> queue_pair = own != nullptr ? own : queue_pair_.lock();
  if (role_ != Role::kRequested || queue_pair == nullptr || queue_pair->closing()) return EINVAL;
  if (own != nullptr) {
    const int error = CheckOwn(*own);
    if (error != 0) return error;
    own_queue_pair_ = own;
  }
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

int CmId::Establish() {
  if (iwarp()) return EOPNOTSUPP;
  if (role_ != Role::kConnecting || calls_ > 0 || id_->qp != nullptr) return EINVAL;
  const int error = ErrnoOf(rdma_establish(id_));
  if (error == 0) role_ = Role::kConnected;
  return error;
}

int CmId::Notify(ibv_event_type event) {
  if (id_->verbs == nullptr) return EINVAL;
  if (calls_ > 0) return EBUSY;
  return ErrnoOf(rdma_notify(id_, event));
}

int CmId::Disconnect() {
  if (id_->verbs == nullptr) return 0;
  // There is nothing to disconnect, and librdmacm would stop the queue pair.
  if (id_->qp_type == IBV_QPT_UD) return ENOTCONN;
  switch (role_) {
    case Role::kConnecting:
    case Role::kAccepted:
      DisconnectWhenAnswered();
      return 0;
    case Role::kConnected:
    case Role::kEnded: {
      const int error = ErrnoOf(rdma_disconnect(id_));
      // The peer was faster.
      if (error != 0 && error != EINVAL && error != ECONNRESET && error != ENOTCONN) return error;
      const std::shared_ptr<QueuePair> queue_pair = ConnectedQueuePair();
      if (queue_pair != nullptr) queue_pair->Disconnected();
      return 0;
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

int CmId::JoinGroup(uint32_t number, const sockaddr_storage& address, bool send_only) {
  // The kernel looks at the device without checking that there is one.
  if (id_->verbs == nullptr) return EINVAL;
  if (iwarp()) return EOPNOTSUPP;
  const std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  if (role_ != Role::kNew || id_->qp_type != IBV_QPT_UD || (queue_pair != nullptr && queue_pair->closing()))
    return EINVAL;
  for (const Group& group : groups_) {
    if (std::memcmp(&group.address, &address, sizeof address) == 0) return EADDRINUSE;
  }
  sockaddr_storage copy = address;
  rdma_cm_join_mc_attr_ex attributes{};
  attributes.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attributes.join_flags = send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
  attributes.addr = reinterpret_cast<sockaddr*>(&copy);
  const int error = ErrnoOf(
      rdma_join_multicast_ex(id_, &attributes, reinterpret_cast<void*>(static_cast<uintptr_t>(number))));
  if (error == 0) groups_.push_back({number, address});
  return error;
}

void CmId::LeaveGroup(uint32_t number, std::function<void(int)> done) {
  WhenIdle([this, self = shared_from_this(), number, done = std::move(done)]() mutable {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [number](const Group& group) { return group.number == number; });
    if (found == groups_.end()) {
      done(EADDRNOTAVAIL);
      return;
    }
    std::vector<Group> groups{*found};
    groups_.erase(found);
    Leave(std::move(groups), std::move(done));
  });
}

void CmId::LeaveGroups(std::function<void()> then) {
  WhenIdle([this, self = shared_from_this(), then = std::move(then)]() mutable {
    if (groups_.empty()) {
      then();
    } else {
      Leave(std::exchange(groups_, {}), [then = std::move(then)](int) { then(); });
    }
  });
}

void CmId::LeaveGroups() {
  for (Group& group : groups_) rdma_leave_multicast(id_, reinterpret_cast<sockaddr*>(&group.address));
  groups_.clear();
}

void CmId::Leave(std::vector<Group> groups, std::function<void(int)> done) {
  calls_++;
  environment_->RunInPool(
      [self = shared_from_this(), groups = std::move(groups)]() mutable {
        int error = 0;
        for (Group& group : groups) {
          const int result = rdma_leave_multicast(self->id_, reinterpret_cast<sockaddr*>(&group.address));
          if (result != 0) error = ErrnoOf(result);
        }
        return error;
      },
      [this, self = shared_from_this(), done = std::move(done)](int error) {
        done(error);
        EndCall();
      });
}

void CmId::Apply(rdma_cm_event_type type, const rdma_conn_param& parameters, uint32_t group) {
  const std::shared_ptr<QueuePair> queue_pair = ConnectedQueuePair();
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
      // A datagram that found nobody leaves the queue pair to others.
      if (queue_pair != nullptr && (id_->qp_type != IBV_QPT_UD || type == RDMA_CM_EVENT_DEVICE_REMOVAL))
        queue_pair->Disconnected();
      if (role_ != Role::kListening && role_ != Role::kRequested) role_ = Role::kEnded;
      break;
    case RDMA_CM_EVENT_MULTICAST_ERROR:
      // What librdmacm keeps of it stands in the way of another try.
      LeaveGroup(group, [](int) {});
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
  LeaveGroups();
  rdma_destroy_id(id_);
  id_ = nullptr;
}

}  // namespace node_rdma
