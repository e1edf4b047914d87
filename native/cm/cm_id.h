#pragma once

#include <napi.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cm/address.h"
#include "cm/event_channel.h"
#include "support/object.h"
#include "verbs/context_registry.h"

namespace node_rdma {

class Environment;
class QueuePair;

class CmId : public Object, public std::enable_shared_from_this<CmId> {
 public:
  static constexpr Kind kKind = Kind::kCmId;

  // What the id is used for: librdmacm faults on some calls in the wrong role, so they are checked here.
  enum class Role { kNew, kListening, kRequested, kAccepted, kRejected, kConnecting, kConnected, kEnded };

  CmId(Environment* environment, std::shared_ptr<EventChannel> channel, rdma_cm_id* id, Role role);
  ~CmId() override;

  // The handle of an id's object, from its context; 0 for none.
  static uint32_t HandleOf(const rdma_cm_id* id) {
    return id == nullptr ? 0 : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(id->context));
  }

  rdma_cm_id* id() const { return id_; }
  // A connection request that has not been answered.
  bool requested() const { return role_ == Role::kRequested; }

  // It has a device, and that is an iWARP one.
  bool iwarp() const {
    return id_->verbs != nullptr && id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
  }

  // Each returns 0 or an errno.
  int SetOption(int level, int name, const void* value, size_t size);
  int Bind(const sockaddr_storage& address);
  int ResolveAddress(sockaddr_storage* source, sockaddr_storage* destination, int timeout);
  int ResolveRoute(int timeout);
  int Listen(int backlog);
  int Migrate(const std::shared_ptr<EventChannel>& channel);
  // `own`: a queue pair that was not made on this id, and is brought up by hand; null for the id's.
  int Accept(rdma_conn_param* parameters, const std::shared_ptr<QueuePair>& own);
  int Reject(const std::vector<uint8_t>& private_data);
  int Establish();
  int Notify(ibv_event_type event);
  // Returns at once; what the peer has yet to answer is disconnected when it has.
  int Disconnect();
  int CreateQueuePair(const Context& context, ibv_pd* pd, ibv_qp_init_attr* attributes);
  // What ibv_modify_qp takes to bring a queue pair of this connection to the state in `attributes`.
  int InitialAttributes(ibv_qp_attr* attributes, int* mask);

  // Groups go by a number of the caller's, which the events carry.
  int JoinGroup(uint32_t number, const sockaddr_storage& address, bool send_only);
  // In the pool; `done` gets 0 or an errno.
  void LeaveGroup(uint32_t number, std::function<void(int)> done);
  // Of an event that has a group: it passes as private data what the group was joined with.
  static uint32_t GroupOf(const rdma_cm_event& event) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event.param.ud.private_data));
  }
  // Leaves every group when no call is in the kernel, then runs `then`: a queue pair in a group can't be
  // destroyed.
  void LeaveGroups(std::function<void()> then);
  // The same at once, on any thread, when nothing else uses the id any more.
  void LeaveGroups();
  // Takes the queue pair off the id, on the environment's thread, so that neither librdmacm's handling of
  // events nor a call on the id reaches one that is being destroyed on another.
  void DetachQueuePair() { id_->qp = nullptr; }
  void SetQueuePair(const std::shared_ptr<QueuePair>& queue_pair) { queue_pair_ = queue_pair; }

  // rdma_connect in the pool; `done` gets 0 or an errno. An errno at once where it may not be called.
  int Connect(const rdma_conn_param& parameters, std::vector<uint8_t> private_data,
              const std::shared_ptr<QueuePair>& own, std::function<void(int)> done);

  // What an event means for the id and its queue pair. `group`: 0 for an event without one.
  void Apply(rdma_cm_event_type type, const rdma_conn_param& parameters, uint32_t group);

  // Runs when no call on the id is in the kernel.
  void WhenIdle(std::function<void()> action);
  // Destroys the queue pair, rejects what was not answered and destroys the id; then `then` runs.
  void Destroy(std::function<void()> then);

  static void Export(Napi::Object exports);

 private:
  struct Group {
    uint32_t number;
    sockaddr_storage address;
  };

  // The one that was made on the id, or else the one that it connects for another.
  std::shared_ptr<QueuePair> ConnectedQueuePair() const;
  // Whether this queue pair can be connected by this id.
  int CheckOwn(const QueuePair& own) const;
  void Leave(std::vector<Group> groups, std::function<void(int)> done);
  void DisconnectWhenAnswered();
  // After a call in the pool.
  void EndCall();
  void DestroyVerbs();
  void DestroyAfterQueuePair(std::function<void()> then);

  Environment* const environment_;
  std::shared_ptr<EventChannel> channel_;
  rdma_cm_id* id_;
  Role role_;
  uint32_t initiator_depth_ = 0;
  std::weak_ptr<QueuePair> queue_pair_;
  std::weak_ptr<QueuePair> own_queue_pair_;
  std::vector<Group> groups_;
  int calls_ = 0;
  bool disconnecting_ = false;
  std::deque<std::function<void()>> when_idle_;
};

}  // namespace node_rdma
