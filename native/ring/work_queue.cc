#include "ring/work_queue.h"

#include <bit>
#include <cassert>

#include "memory/memory_region.h"

namespace node_rdma {

// Positions are 31 bits of a running count; the ring of entries is a power of two, so they wrap together.
WorkQueue::WorkQueue(uint32_t capacity, uint32_t max_sges)
    : capacity_(capacity),
      max_sges_(max_sges == 0 ? 1 : max_sges),
      mask_(std::bit_ceil(capacity == 0 ? 1 : capacity) - 1),
      entries_(mask_ + 1),
      regions_(static_cast<size_t>(mask_ + 1) * max_sges_) {}

uint32_t WorkQueue::Push(const Entry& entry, MemoryRegion* const* regions) {
  assert(!full());
  const uint32_t position = tail_++;
  const uint32_t index = Index(position);
  entries_[index] = entry;
  entries_[index].outstanding = true;
  for (uint32_t i = 0; i < entry.sge_count; i++) {
    regions_[index * max_sges_ + i] = regions[i];
    regions[i]->AddInFlight(1);
  }
  in_flight_++;
  unsignaled_run_ = entry.unsignaled ? unsignaled_run_ + 1 : 0;
  return position & kPositionMask;
}

void WorkQueue::Pop() {
  assert(tail_ != head_);
  Finish(tail_ - 1);
  tail_--;
  if (static_cast<int32_t>(retired_ - tail_) > 0) retired_ = tail_;
  if (unsignaled_run_ > 0) unsignaled_run_--;
}

void WorkQueue::PopNewest(uint32_t count, const std::function<void(const Entry&)>& each) {
  for (uint32_t i = count; i > 0; i--) each(entries_[Index(tail_ - i)]);
  for (uint32_t i = 0; i < count; i++) Pop();
}

const WorkQueue::Entry* WorkQueue::At(uint32_t position) const {
  const uint32_t distance = (position - head_) & kPositionMask;
  if (distance >= tail_ - head_) return nullptr;
  const Entry& entry = entries_[Index(position)];
  return entry.outstanding ? &entry : nullptr;
}

void WorkQueue::Retire(uint32_t position, bool success) {
  // Back to the full width of the running count.
  position = head_ + ((position - head_) & kPositionMask);
  // siw completes a Send before an earlier Read, so only requests that the device never reports are inferred;
  // Reads and atomics are always signaled.
  for (; success && static_cast<int32_t>(position - retired_) > 0; retired_++) {
    const Entry& entry = entries_[Index(retired_)];
    if (entry.outstanding && entry.unsignaled) Finish(retired_);
  }
  Finish(position);
  Advance();
}

void WorkQueue::Clear(const std::function<void(const Entry&)>& each) {
  for (; head_ != tail_; head_++) {
    const Entry entry = entries_[Index(head_)];
    if (!entry.outstanding) continue;
    Finish(head_);
    each(entry);
  }
  retired_ = head_;
  unsignaled_run_ = 0;
}

void WorkQueue::Finish(uint32_t position) {
  const uint32_t index = Index(position);
  Entry& entry = entries_[index];
  entry.outstanding = false;
  for (uint32_t i = 0; i < entry.sge_count; i++) regions_[index * max_sges_ + i]->AddInFlight(-1);
  in_flight_--;
}

void WorkQueue::Advance() {
  while (head_ != tail_ && !entries_[Index(head_)].outstanding) head_++;
  if (static_cast<int32_t>(head_ - retired_) > 0) retired_ = head_;
}

}  // namespace node_rdma
