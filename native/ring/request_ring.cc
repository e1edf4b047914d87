#include "ring/request_ring.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "environment.h"
#include "memory/memory_region.h"
#include "memory/memory_window.h"
#include "ring/request_fields.h"
#include "verbs/address_handle.h"
#include "verbs/queue_pair.h"
#include "verbs/shared_receive_queue.h"

namespace node_rdma {

namespace {

template <typename Request>
uint32_t ChainLength(const Request* request) {
  uint32_t length = 0;
  for (; request != nullptr; request = request->next) length++;
  return length;
}

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
  GatherElement elements[kMaxSges];
  MemoryRegion* regions[kMaxSges];
  int error = record.sge_count > kMaxSges ? EINVAL : 0;
  if (error == 0) {
    elements[0] = {record.region, record.length, record.offset};
    for (uint32_t i = 1; i < record.sge_count; i++) elements[i] = more[i - 1];
  }
  std::shared_ptr<QueuePair> queue_pair = environment_->handles().Share<QueuePair>(record.queue_pair);
  if (queue_pair == nullptr) {
    TakeShared(record, elements);
    return;
  }
  if (error == 0) error = Check(*queue_pair, record, elements, regions);
  if (error != 0) {
    environment_->completions().AddFailed(queue_pair->CompletionQueueOf(record.opcode), record, error);
    return;
  }
  if (!queue_pair->chained()) touched_.push_back(queue_pair);
  Chain(queue_pair.get(), record, elements, regions);
}

void RequestRing::TakeShared(const WorkRequest& record, const GatherElement* elements) {
  std::shared_ptr<SharedReceiveQueue> srq =
      environment_->handles().Share<SharedReceiveQueue>(record.queue_pair);
  int error = 0;
  uint64_t total = 0;
  MemoryRegion* regions[kMaxSges];
  if (srq == nullptr || srq->closing()) {
    error = EBADF;
  } else if (record.opcode != kOpcodeReceive || record.sge_count > srq->max_sge() ||
             (record.flags & kInline) != 0) {
    error = EINVAL;
  } else if (srq->full()) {
    error = ENOMEM;
  } else {
    error = CheckElements(srq->protection_domain(), record, elements, regions, &total);
  }
  if (error != 0) {
    environment_->completions().AddFailed(0, record, error);
    return;
  }
  if (!srq->chained()) touched_shared_.push_back(srq);
  int count = 0;
  ibv_sge* sges = AddElements(record, elements, regions, &count);
  const uint32_t position = srq->receives().Push({.slot = record.slot,
                                                  .generation = record.generation,
                                                  .opcode = record.opcode,
                                                  .sge_count = record.sge_count,
                                                  .outstanding = true,
                                                  .silent = false,
                                                  .unsignaled = false},
                                                 regions);
  srq->Chain(AddReceive(srq->WrId(position), sges, count));
}

ibv_sge* RequestRing::AddElements(const WorkRequest& record, const GatherElement* elements,
                                  MemoryRegion* const* regions, int* count) {
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
  *count = static_cast<int>(sge_count);
  return sges;
}

ibv_recv_wr* RequestRing::AddReceive(uint64_t wr_id, ibv_sge* sges, int sge_count) {
  ibv_recv_wr* wr = &receives_[receive_count_++];
  *wr = {};
  wr->wr_id = wr_id;
  wr->sg_list = sges;
  wr->num_sge = sge_count;
  return wr;
}

// The only element says what the window opens; it is not data.
void RequestRing::AddBind(const WorkRequest& record, const ibv_sge& element, ibv_send_wr* wr) const {
  const MemoryWindow* window = environment_->handles().Find<MemoryWindow>(LowHalf(record));
  MemoryRegion* region = environment_->handles().Find<MemoryRegion>(record.region);
  wr->num_sge = 0;
  wr->sg_list = nullptr;
  wr->bind_mw.mw = window->mw();
  wr->bind_mw.rkey = record.rkey;
  wr->bind_mw.bind_info = {region->mr(), element.addr, element.length, HighHalf(record)};
}

void RequestRing::Chain(QueuePair* queue_pair, const WorkRequest& record, const GatherElement* elements,
                        MemoryRegion* const* regions) {
  int sge_count = 0;
  ibv_sge* sges = AddElements(record, elements, regions, &sge_count);
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
    queue_pair->ChainReceive(AddReceive(queue_pair->WrId(position, true), sges, sge_count));
    return;
  }
  ibv_send_wr& wr = sends_[send_count_++];
  std::memset(&wr, 0, sizeof wr);
  wr.wr_id = queue_pair->WrId(position, false);
  wr.sg_list = sges;
  wr.num_sge = sge_count;
  wr.opcode = static_cast<ibv_wr_opcode>(record.opcode);
  wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) | ((record.flags & kFence) != 0 ? IBV_SEND_FENCE : 0) |
                  ((record.flags & kSolicited) != 0 ? IBV_SEND_SOLICITED : 0) |
                  ((record.flags & kInline) != 0 ? IBV_SEND_INLINE : 0);
  if (record.opcode == IBV_WR_SEND_WITH_INV || record.opcode == IBV_WR_LOCAL_INV) {
    wr.invalidate_rkey = record.immediate;
  } else {
    wr.imm_data = htonl(record.immediate);
  }
  if (queue_pair->datagrams()) {
    wr.wr.ud.ah = environment_->handles().Find<AddressHandle>(LowHalf(record))->ah();
    wr.wr.ud.remote_qpn = HighHalf(record);
    wr.wr.ud.remote_qkey = record.rkey;
  } else if (record.opcode == IBV_WR_BIND_MW) {
    AddBind(record, sges[0], &wr);
  } else if (IsAtomic(record.opcode)) {
    wr.wr.atomic.remote_addr = record.remote_address;
    wr.wr.atomic.rkey = record.rkey;
    wr.wr.atomic.compare_add = record.compare_add;
    wr.wr.atomic.swap = record.swap;
  } else {
    wr.wr.rdma.remote_addr = record.remote_address;
    wr.wr.rdma.rkey = record.rkey;
  }
  queue_pair->ChainSend(&wr);
  if (record.opcode == IBV_WR_BIND_MW) PostBind(queue_pair, record);
}

// At once: the provider takes the window's present key from the window, and the next binding needs the new
// one.
void RequestRing::PostBind(QueuePair* queue_pair, const WorkRequest& record) {
  PostReceives(queue_pair);
  if (!PostSends(queue_pair)) return;
  environment_->handles()
      .Find<MemoryWindow>(LowHalf(record))
      ->Bound(environment_->handles().Share<MemoryRegion>(record.region), record.rkey);
}

void RequestRing::PostChains() {
  for (const std::shared_ptr<SharedReceiveQueue>& srq : touched_shared_) PostShared(srq.get());
  touched_shared_.clear();
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
  queue_pair->Refuse(true, ChainLength(bad), error);
}

void RequestRing::PostShared(SharedReceiveQueue* srq) {
  ibv_recv_wr* first = srq->TakeChain();
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_srq_recv(srq->srq(), first, &bad);
  if (result == 0) return;
  if (bad == nullptr) bad = first;
  srq->Refuse(ChainLength(bad), std::abs(result));
}

bool RequestRing::PostSends(QueuePair* queue_pair) {
  ibv_send_wr* first = queue_pair->TakeSendChain();
  if (first == nullptr) return true;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(queue_pair->qp(), first, &bad);
  if (result == 0) return true;
  const int error = std::abs(result);
  // siw does not say which one when the doorbell fails; its send queue takes nothing more after that.
  if (bad == nullptr) {
    bad = first;
    queue_pair->Break();
  }
  queue_pair->Refuse(false, ChainLength(bad), error);
  return false;
}

}  // namespace node_rdma
