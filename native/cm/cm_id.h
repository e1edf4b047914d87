#pragma once

#include <napi.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

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

  // Each returns 0 or an errno.
  int Bind(const sockaddr_storage& address);
  int ResolveAddress(sockaddr_storage* source, sockaddr_storage* destination, int timeout);
  int ResolveRoute(int timeout);
  int Listen(int backlog);
  int Accept(rdma_conn_param* parameters);
  int Reject(const std::vector<uint8_t>& private_data);
  // Returns at once; what the peer has yet to answer is disconnected when it has.
  int Disconnect();
  int CreateQueuePair(const Context& context, ibv_pd* pd, ibv_qp_init_attr* attributes);
  // Takes the queue pair off the id, on the environment's thread, so that neither librdmacm's handling of
  // events nor a call on the id reaches one that is being destroyed on another.
  void DetachQueuePair() { id_->qp = nullptr; }
  void SetQueuePair(const std::shared_ptr<QueuePair>& queue_pair) { queue_pair_ = queue_pair; }

  // rdma_connect in the pool; `done` gets 0 or an errno. An errno at once where it may not be called.
  int Connect(const rdma_conn_param& parameters, std::vector<uint8_t> private_data,
              std::function<void(int)> done);

  // What an event means for the id and its queue pair.
  void Apply(rdma_cm_event_type type, const rdma_conn_param& parameters);

  // Runs when no call on the id is in the kernel.
  void WhenIdle(std::function<void()> action);
  // Destroys the queue pair, rejects what was not answered and destroys the id; then `then` runs.
  void Destroy(std::function<void()> then);

  static void Export(Napi::Object exports);

 private:
  void DisconnectWhenAnswered();
  // After a call in the pool.
  void EndCall();
  void DestroyVerbs();
  void DestroyAfterQueuePair(std::function<void()> then);

  Environment* const environment_;
  const std::shared_ptr<EventChannel> channel_;
  rdma_cm_id* id_;
  Role role_;
  uint32_t initiator_depth_ = 0;
  std::weak_ptr<QueuePair> queue_pair_;
  int calls_ = 0;
  bool disconnecting_ = false;
  std::deque<std::function<void()>> when_idle_;
};

}  // namespace node_rdma
