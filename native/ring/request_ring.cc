#include "ring/request_ring.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "environment.h"
#include "memory/memory_region.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

bool IsAtomic(uint8_t opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool WritesLocally(uint8_t opcode) {
  return opcode == kOpcodeReceive || opcode == IBV_WR_RDMA_READ || IsAtomic(opcode);
}

// Reads and atomics take the memory of a slot until the response is there, whatever completes before.
bool NeedsCompletion(uint8_t opcode) { return opcode == IBV_WR_RDMA_READ || IsAtomic(opcode); }

}  // namespace

RequestRing::RequestRing(Environment* environment)
    : environment_(environment),
      records_(static_cast<WorkRequest*>(std::aligned_alloc(4096, size()))),
      sends_(new ibv_send_wr[kCapacity]),
      receives_(new ibv_recv_wr[kCapacity]),
      sges_(new ibv_sge[kCapacity * 4 + kMaxSges]) {
  std::memset(records_, 0, size());
}

RequestRing::~RequestRing() { std::free(records_); }

void RequestRing::Flush() {
  Control& control = environment_->control();
  if (flushing_ || environment_->ending()) return;
  flushing_ = true;
  // What JavaScript wrote there is no more than a claim.
  uint32_t pending = control.request_head - control.request_tail;
  if (pending > kCapacity) pending = kCapacity;
  uint32_t tail = control.request_tail;
  const uint32_t head = tail + pending;
  while (tail != head) {
    const WorkRequest record = records_[tail % kCapacity];
    tail++;
    GatherElement more[kMaxSges];
    uint32_t count = record.sge_count > 1 ? record.sge_count - 1u : 0;
    if (count > kMaxSges - 1) count = 0;
    uint32_t taken = 0;
    while (taken < count && tail != head) {
      Continuation continuation;
      std::memcpy(&continuation, &records_[tail++ % kCapacity], sizeof continuation);
      for (uint32_t i = 0; i < 4 && taken < count; i++) more[taken++] = continuation.elements[i];
    }
    // The rest of its elements was not submitted.
    for (; taken < count; taken++) more[taken] = {};
    Take(record, more);
  }
  control.request_tail = head;
  control.request_head = head;
  PostChains();
  flushing_ = false;
}

void RequestRing::Take(const WorkRequest& record, const GatherElement* more) {
  std::shared_ptr<QueuePair> queue_pair = environment_->handles().Share<QueuePair>(record.queue_pair);
  if (queue_pair == nullptr) {
    environment_->completions().AddFailed(0, record, EBADF);
    return;
  }
  GatherElement elements[kMaxSges];
  MemoryRegion* regions[kMaxSges];
  int error = record.sge_count > kMaxSges ? EINVAL : 0;
  if (error == 0) {
    elements[0] = {record.region, record.length, record.offset};
    for (uint32_t i = 1; i < record.sge_count; i++) elements[i] = more[i - 1];
    error = Check(*queue_pair, record, elements, regions);
  }
  if (error != 0) {
    environment_->completions().AddFailed(queue_pair->CompletionQueueOf(record.opcode), record, error);
    return;
  }
  if (!queue_pair->chained()) touched_.push_back(queue_pair);
  Chain(queue_pair.get(), record, elements, regions);
}

int RequestRing::Check(const QueuePair& queue_pair, const WorkRequest& record, const GatherElement* elements,
                       MemoryRegion** regions) const {
  const uint8_t opcode = record.opcode;
  const bool receive = opcode == kOpcodeReceive;
  if (!receive && opcode > IBV_WR_SEND_WITH_INV) return EINVAL;
  int error = receive ? queue_pair.CheckReceive() : queue_pair.CheckSend(opcode);
  if (error != 0) return error;
  const WorkQueue& queue = receive ? queue_pair.receives() : queue_pair.sends();
  if (queue.full()) return ENOMEM;
  if (record.sge_count > (receive ? queue_pair.max_receive_sge() : queue_pair.max_send_sge())) return EINVAL;
  if ((record.flags & kInline) != 0 && (receive || opcode == IBV_WR_RDMA_READ || IsAtomic(opcode)))
    return EINVAL;

  uint64_t total = 0;
  for (uint32_t i = 0; i < record.sge_count; i++) {
    MemoryRegion* region = environment_->handles().Find<MemoryRegion>(elements[i].region);
    if (region == nullptr || region->closing()) return EBADF;
    if (region->protection_domain() != queue_pair.protection_domain()) return EINVAL;
    if (elements[i].offset > region->length() || elements[i].length > region->length() - elements[i].offset) {
      return EFAULT;
    }
    if (WritesLocally(opcode) && !region->Allows(IBV_ACCESS_LOCAL_WRITE)) return EACCES;
    regions[i] = region;
    total += elements[i].length;
  }
  if (total > UINT32_MAX) return EMSGSIZE;
  if ((record.flags & kInline) != 0 && total > queue_pair.max_inline_data()) return EINVAL;
  return opcode == IBV_WR_RDMA_READ ? CheckRead(queue_pair, record, regions) : 0;
}

int RequestRing::CheckRead(const QueuePair& queue_pair, const WorkRequest& record,
                           MemoryRegion* const* regions) const {
  if (record.sge_count > queue_pair.max_read_sge()) return EINVAL;
  // With a depth of 0 siw's send queue is wedged by the failed doorbell, and rxe's hangs.
  if (queue_pair.initiator_depth() == 0) return EOPNOTSUPP;
  if (!queue_pair.iwarp()) return 0;
  // siw takes the stale element of a reused slot for a Read without one, and refuses a fenced Read after it
  // has taken it: both end the queue.
  if (record.sge_count == 0) return EINVAL;
  if ((record.flags & kFence) != 0) return EOPNOTSUPP;
  // RFC 5040 section 5.3: the data of a Read Response is placed through the sink's steering tag.
  return regions[0]->Allows(IBV_ACCESS_REMOTE_WRITE) ? 0 : EACCES;
}

void RequestRing::Chain(QueuePair* queue_pair, const WorkRequest& record, const GatherElement* elements,
                        MemoryRegion* const* regions) {
  ibv_sge* sges = &sges_[sge_count_];
  uint32_t sge_count = 0;
  for (uint32_t i = 0; i < record.sge_count; i++) {
    // siw's transmit path spins for ever on an empty element before another one (siw_qp_tx.c, siw_tx_hdt).
    // One is kept where all are empty: a request without elements is something else.
    if (elements[i].length == 0 && (i + 1 < record.sge_count || sge_count > 0)) continue;
    ibv_sge& sge = sges[sge_count++];
    sge.addr = regions[i]->address() + elements[i].offset;
    sge.length = elements[i].length;
    sge.lkey = regions[i]->lkey();
  }
  sge_count_ += sge_count;

  const bool receive = record.opcode == kOpcodeReceive;
  WorkQueue& queue = receive ? queue_pair->receives() : queue_pair->sends();
  const bool asked = receive || (record.flags & kSignaled) != 0;
  // A queue of unsignaled requests only could never be seen to empty.
  const bool signaled =
      asked || NeedsCompletion(record.opcode) || queue.unsignaled_run() + 1 >= (queue.capacity() + 1) / 2;
  const uint32_t position = queue.Push({.slot = record.slot,
                                        .generation = record.generation,
                                        .opcode = record.opcode,
                                        .sge_count = record.sge_count,
                                        .outstanding = true,
                                        .silent = !asked,
                                        .unsignaled = !signaled},
                                       regions);
  if (receive) {
    ibv_recv_wr& wr = receives_[receive_count_++];
    wr = {};
    wr.wr_id = queue_pair->WrId(position, true);
    wr.sg_list = sges;
    wr.num_sge = static_cast<int>(sge_count);
    queue_pair->ChainReceive(&wr);
    return;
  }
  ibv_send_wr& wr = sends_[send_count_++];
  std::memset(&wr, 0, sizeof wr);
  wr.wr_id = queue_pair->WrId(position, false);
  wr.sg_list = sges;
  wr.num_sge = static_cast<int>(sge_count);
  wr.opcode = static_cast<ibv_wr_opcode>(record.opcode);
  wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) | ((record.flags & kFence) != 0 ? IBV_SEND_FENCE : 0) |
                  ((record.flags & kSolicited) != 0 ? IBV_SEND_SOLICITED : 0) |
                  ((record.flags & kInline) != 0 ? IBV_SEND_INLINE : 0);
  if (record.opcode == IBV_WR_SEND_WITH_INV || record.opcode == IBV_WR_LOCAL_INV) {
    wr.invalidate_rkey = record.immediate;
  } else {
    wr.imm_data = htonl(record.immediate);
  }
  if (IsAtomic(record.opcode)) {
    wr.wr.atomic.remote_addr = record.remote_address;
    wr.wr.atomic.rkey = record.rkey;
    wr.wr.atomic.compare_add = record.compare_add;
    wr.wr.atomic.swap = record.swap;
  } else {
    wr.wr.rdma.remote_addr = record.remote_address;
    wr.wr.rdma.rkey = record.rkey;
  }
  queue_pair->ChainSend(&wr);
}

void RequestRing::PostChains() {
  // Receives first: a send may tell the peer, which can be in this process, that there is room for it to
  // answer.
  for (const std::shared_ptr<QueuePair>& queue_pair : touched_) PostReceives(queue_pair.get());
  for (const std::shared_ptr<QueuePair>& queue_pair : touched_) PostSends(queue_pair.get());
  touched_.clear();
  send_count_ = receive_count_ = sge_count_ = 0;
}

void RequestRing::PostReceives(QueuePair* queue_pair) {
  ibv_recv_wr* first = queue_pair->TakeReceiveChain();
  if (first == nullptr) return;
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(queue_pair->qp(), first, &bad);
  if (result == 0) return;
  // Providers differ in the sign, and errno may be stale.
  const int error = std::abs(result);
  if (bad == nullptr) bad = first;
  uint32_t count = 0;
  for (ibv_recv_wr* wr = bad; wr != nullptr; wr = wr->next) count++;
  queue_pair->Refuse(true, count, error);
}

void RequestRing::PostSends(QueuePair* queue_pair) {
  ibv_send_wr* first = queue_pair->TakeSendChain();
  if (first == nullptr) return;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(queue_pair->qp(), first, &bad);
  if (result == 0) return;
  const int error = std::abs(result);
  // siw does not say which one when the doorbell fails; its send queue takes nothing more after that.
  if (bad == nullptr) {
    bad = first;
    queue_pair->Break();
  }
  uint32_t count = 0;
  for (ibv_send_wr* wr = bad; wr != nullptr; wr = wr->next) count++;
  queue_pair->Refuse(false, count, error);
}

}  // namespace node_rdma
