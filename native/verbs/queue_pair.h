#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ring/records.h"
#include "ring/request_chain.h"
#include "ring/work_queue.h"
#include "support/object.h"
#include "verbs/completion_queue.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class CmId;
class Environment;
class SharedReceiveQueue;

class QueuePair : public Object, public std::enable_shared_from_this<QueuePair> {
 public:
  static constexpr Kind kKind = Kind::kQueuePair;

  struct Parents {
    std::shared_ptr<ProtectionDomain> pd;
    std::shared_ptr<CompletionQueue> send_cq;
    std::shared_ptr<CompletionQueue> receive_cq;
    // Null for a queue pair that is brought up by hand.
    std::shared_ptr<CmId> cm_id;
    // Null for a queue pair with receives of its own.
    std::shared_ptr<SharedReceiveQueue> srq;
  };

  QueuePair(Environment* environment, Parents parents, ibv_qp* qp, const ibv_qp_init_attr& attributes);
  ~QueuePair() override;

  ibv_qp* qp() const { return qp_; }
  const ProtectionDomain* protection_domain() const { return pd_.get(); }
  bool datagrams() const { return type_ == IBV_QPT_UD; }
  const WorkQueue& sends() const { return sends_; }
  const WorkQueue& receives() const { return receives_; }
  WorkQueue& sends() { return sends_; }
  WorkQueue& receives() { return receives_; }
  uint32_t max_send_sge() const { return capacity_.max_send_sge; }
  uint32_t max_receive_sge() const { return capacity_.max_recv_sge; }
  uint32_t max_inline_data() const { return capacity_.max_inline_data; }
  uint32_t max_read_sge() const { return max_read_sge_; }
  bool iwarp() const { return pd_->context()->iwarp(); }
  bool siw() const { return siw_; }
  // Made on a cm_id, which brings it up.
  bool has_cm_id() const { return cm_id_ != nullptr; }
  uint32_t CompletionQueueOf(uint8_t opcode) const;

  // Reads and atomics that may be outstanding towards the peer, as negotiated.
  uint32_t initiator_depth() const { return initiator_depth_; }

  // Whether the device would take such a request now; siw's queue is wedged by one that it does not take.
  int CheckSend(uint8_t opcode) const;
  int CheckReceive() const;
  void Connected(uint32_t initiator_depth);
  // From now on nothing is taken, and nothing outstanding succeeds.
  void Disconnected();
  // The send queue takes nothing more.
  void Break();
  // The state changed by ibv_modify_qp.
  void Modified(const ibv_qp_attr& attributes, int mask);

  // Chains of the flush that is under way.
  bool chained() const { return !send_chain_.empty() || !receive_chain_.empty(); }
  void ChainSend(ibv_send_wr* request) { send_chain_.Add(request); }
  void ChainReceive(ibv_recv_wr* request) { receive_chain_.Add(request); }
  ibv_send_wr* TakeSendChain() { return send_chain_.Take(); }
  ibv_recv_wr* TakeReceiveChain() { return receive_chain_.Take(); }
  // The newest `count` requests were not taken by the provider: each comes back as a completion.
  void Refuse(bool receive, uint32_t count, int error);

  uint64_t WrId(uint32_t position, bool receive) const {
    return uint64_t{handle()} << 32 | (receive ? kReceiveBit : 0) | position;
  }
  static uint32_t HandleOf(uint64_t wr_id) { return static_cast<uint32_t>(wr_id >> 32); }
  // Takes a completion in; true when JavaScript is to see what was written to `out`.
  bool Complete(const ibv_wc& completion, WorkCompletion* out);

  // Destroys in the pool, as soon as no call on its cm_id is in the kernel. Then every request still
  // outstanding comes back as flushed, the handle goes, and `then` runs on the environment's thread. May be
  // called again before that, and after it.
  void Destroy(std::function<void()> then);

  static void Export(Napi::Object exports);

 private:
  enum class Phase { kReady, kConnected, kDisconnected, kBroken };
  static constexpr uint32_t kReceiveBit = 0x8000'0000;

  void Detach();
  void DestroyVerbs();
  void Destroyed();
  void SettleAll();

  Environment* const environment_;
  const std::shared_ptr<CmId> cm_id_;
  const Membership<ProtectionDomain> pd_;
  const Membership<CompletionQueue> send_cq_;
  const Membership<CompletionQueue> receive_cq_;
  const std::shared_ptr<SharedReceiveQueue> srq_;
  const uint32_t number_;
  ibv_qp* qp_;
  bool detached_ = false;
  bool destroyed_ = false;
  std::vector<std::function<void()>> when_destroyed_;
  const ibv_qp_type type_;
  const ibv_qp_cap capacity_;
  const uint32_t max_read_sge_;
  const bool atomics_;
  const bool siw_;
  WorkQueue sends_;
  WorkQueue receives_;
  Phase phase_ = Phase::kReady;
  uint32_t initiator_depth_ = 0;
  bool receives_allowed_;
  RequestChain<ibv_send_wr> send_chain_;
  RequestChain<ibv_recv_wr> receive_chain_;
};

}  // namespace node_rdma
