#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "ring/records.h"
#include "ring/request_chain.h"
#include "ring/work_queue.h"
#include "support/object.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class Environment;

class SharedReceiveQueue : public Object, public std::enable_shared_from_this<SharedReceiveQueue> {
 public:
  static constexpr Kind kKind = Kind::kSharedReceiveQueue;

  SharedReceiveQueue(Environment* environment, std::shared_ptr<ProtectionDomain> pd, ibv_srq* srq,
                     const ibv_srq_attr& attributes);
  ~SharedReceiveQueue() override;

  ibv_srq* srq() const { return srq_; }
  const ProtectionDomain* protection_domain() const { return pd_.get(); }
  std::atomic<int>& users() { return users_; }
  WorkQueue& receives() { return receives_; }
  bool full() const { return receives_.full() || receives_.in_flight() >= max_requests_; }
  uint32_t max_sge() const { return max_sge_; }

  // A completion names its queue pair by the number that the device gave it.
  void Attach(uint32_t number, uint32_t queue_pair, bool datagrams) {
    members_[number] = {queue_pair, datagrams};
  }
  void Detach(uint32_t number) { members_.erase(number); }

  // The chain of the flush that is under way.
  bool chained() const { return !chain_.empty(); }
  void Chain(ibv_recv_wr* request) { chain_.Add(request); }
  ibv_recv_wr* TakeChain() { return chain_.Take(); }
  // The newest `count` requests were not taken by the provider.
  void Refuse(uint32_t count, int error);

  uint64_t WrId(uint32_t position) const { return uint64_t{handle()} << 32 | position; }
  // Takes a completion in; true when JavaScript is to see what was written to `out`.
  bool Complete(const ibv_wc& completion, WorkCompletion* out);
  // Destroys in the pool; then every request that is left comes back as flushed, the handle goes, and `then`
  // runs. Not while a queue pair uses it.
  void Destroy(std::function<void()> then);

  static void Export(Napi::Object exports);

 private:
  void DestroyVerbs();
  void SettleAll();

  Environment* const environment_;
  const Membership<ProtectionDomain> pd_;
  ibv_srq* srq_;
  const uint32_t max_requests_;
  const uint32_t max_sge_;
  std::atomic<int> users_ = 0;
  struct Member {
    uint32_t queue_pair = 0;
    bool datagrams = false;
  };
  std::unordered_map<uint32_t, Member> members_;
  WorkQueue receives_;
  RequestChain<ibv_recv_wr> chain_;
};

}  // namespace node_rdma
