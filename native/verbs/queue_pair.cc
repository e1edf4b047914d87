#include "verbs/queue_pair.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "verbs/completion_fields.h"
#include "verbs/shared_receive_queue.h"

namespace node_rdma {

QueuePair::QueuePair(Environment* environment, Parents parents, ibv_qp* qp,
                     const ibv_qp_init_attr& attributes)
    : Object(kKind),
      environment_(environment),
      cm_id_(std::move(parents.cm_id)),
      pd_(std::move(parents.pd)),
      send_cq_(std::move(parents.send_cq)),
      receive_cq_(std::move(parents.receive_cq)),
      srq_(std::move(parents.srq)),
      number_(qp->qp_num),
      qp_(qp),
      type_(attributes.qp_type),
      capacity_(attributes.cap),
      max_read_sge_(static_cast<uint32_t>(std::max(pd_->context()->attributes().max_sge_rd, 1))),
      atomics_(pd_->context()->attributes().atomic_cap != IBV_ATOMIC_NONE),
      siw_(pd_->context()->siw()),
      sends_(attributes.cap.max_send_wr, attributes.cap.max_send_sge),
      receives_(attributes.cap.max_recv_wr, attributes.cap.max_recv_sge),
      receives_allowed_(cm_id_ != nullptr) {
  // rdma_create_qp has brought a queue pair of datagrams up to RTS already.
  if (type_ == IBV_QPT_UD && cm_id_ != nullptr) phase_ = Phase::kConnected;
  if (srq_ != nullptr) srq_->users()++;
}

QueuePair::~QueuePair() {
  DestroyVerbs();
  if (srq_ != nullptr) srq_->users()--;
}

void QueuePair::Detach() {
  if (cm_id_ != nullptr && !detached_) cm_id_->DetachQueuePair();
  detached_ = true;
}

void QueuePair::DestroyVerbs() {
  if (qp_ == nullptr) return;
  ContextRegistry::Shared().Unroute(qp_);
  if (cm_id_ != nullptr && !detached_) cm_id_->LeaveGroups();
  Detach();
  // All that rdma_destroy_qp does for a queue pair with completion queues of ours.
  ibv_destroy_qp(qp_);
  qp_ = nullptr;
}

uint32_t QueuePair::CompletionQueueOf(uint8_t opcode) const {
  return (opcode == kOpcodeReceive ? receive_cq_ : send_cq_)->handle();
}

int QueuePair::CheckReceive() const {
  if (closing()) return EBADF;
  // With a shared receive queue there is none of its own.
  if (srq_ != nullptr || !receives_allowed_) return EINVAL;
  // siw takes a receive after the connection has ended and never flushes it.
  if (phase_ == Phase::kDisconnected) return ENOTCONN;
  return 0;
}

int QueuePair::CheckSend(uint8_t opcode) const {
  if (closing()) return EBADF;
  if (phase_ == Phase::kBroken) return EIO;
  if (type_ == IBV_QPT_UD && opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) return EOPNOTSUPP;
  switch (opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      if (!atomics_ || type_ != IBV_QPT_RC) return EOPNOTSUPP;
      break;
    case IBV_WR_RDMA_READ:
      if (type_ != IBV_QPT_RC) return EOPNOTSUPP;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      if (siw_) return EOPNOTSUPP;
      break;
    default:
      break;
  }
  return phase_ == Phase::kConnected ? 0 : ENOTCONN;
}

void QueuePair::Connected(uint32_t initiator_depth) {
  if (phase_ != Phase::kReady) return;
  phase_ = Phase::kConnected;
  initiator_depth_ = initiator_depth;
}

void QueuePair::Disconnected() {
  phase_ = Phase::kDisconnected;
  if (!siw_ || closing_) return;
  // siw takes what is posted between the end and the news of it, and never completes it. With the queue pair
  // in ERROR everything before it has been flushed.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_, &attributes, IBV_QP_STATE);
  SettleAll();
}

void QueuePair::Break() { phase_ = Phase::kBroken; }

void QueuePair::Modified(const ibv_qp_attr& attributes, int mask) {
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) initiator_depth_ = attributes.max_rd_atomic;
  if ((mask & IBV_QP_STATE) == 0) return;
  switch (attributes.qp_state) {
    case IBV_QPS_RESET:
      phase_ = Phase::kReady;
      receives_allowed_ = false;
      break;
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      receives_allowed_ = true;
      break;
    case IBV_QPS_RTS:
      receives_allowed_ = true;
      phase_ = Phase::kConnected;
      break;
    default:
      phase_ = Phase::kDisconnected;
  }
}

void QueuePair::Refuse(bool receive, uint32_t count, int error) {
  (receive ? receives_ : sends_).PopNewest(count, [this, error](const WorkQueue::Entry& entry) {
    environment_->completions().Add(CompletionQueueOf(entry.opcode),
                                    CompletionOf(entry, handle(), kPostFailed, static_cast<uint32_t>(error)));
  });
}

bool QueuePair::Complete(const ibv_wc& completion, WorkCompletion* out) {
  const auto low = static_cast<uint32_t>(completion.wr_id);
  WorkQueue& queue = (low & kReceiveBit) != 0 ? receives_ : sends_;
  const uint32_t position = low & WorkQueue::kPositionMask;
  const WorkQueue::Entry* entry = queue.At(position);
  if (entry == nullptr) return false;
  const bool success = completion.status == IBV_WC_SUCCESS;
  const bool seen = !entry->silent || !success;
  if (seen) {
    FillCompletion(completion, *entry, handle(), datagrams(), out);
  }
  queue.Retire(position, success);
  return seen;
}

void QueuePair::Destroy(std::function<void()> then) {
  if (destroyed_) {
    then();
    return;
  }
  when_destroyed_.push_back(std::move(then));
  if (closing_) return;
  closing_ = true;
  auto destroy = [self = shared_from_this()] {
    self->Detach();
    // Destroying takes what is left of the queue pair off its queues, also the receives of others.
    if (self->srq_ != nullptr) self->environment_->completions().Collect(self->receive_cq_.get());
    self->environment_->RunInPool(
        [self] {
          self->DestroyVerbs();
          return 0;
        },
        [self](int) { self->Destroyed(); });
  };
  if (cm_id_ != nullptr) {
    cm_id_->LeaveGroups(std::move(destroy));
  } else {
    destroy();
  }
}

void QueuePair::Destroyed() {
  destroyed_ = true;
  SettleAll();
  if (srq_ != nullptr) srq_->Detach(number_);
  environment_->handles().Remove(handle());
  for (auto& then : std::exchange(when_destroyed_, {})) environment_->completions().Then(std::move(then));
}

void QueuePair::SettleAll() {
  // What did complete is told as it was.
  for (CompletionQueue* cq : {send_cq_.get(), receive_cq_.get()}) environment_->completions().Collect(cq);
  for (WorkQueue* queue : {&sends_, &receives_}) {
    queue->Clear([this](const WorkQueue::Entry& entry) {
      if (entry.silent) return;
      environment_->completions().Add(CompletionQueueOf(entry.opcode),
                                      CompletionOf(entry, handle(), IBV_WC_WR_FLUSH_ERR, 0));
    });
  }
}

}  // namespace node_rdma
