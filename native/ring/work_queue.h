#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ring/records.h"

namespace node_rdma {

class MemoryRegion;

// The requests of one send or receive queue that are posted and not completed, in the order of posting: the
// truth about what the device may still read or write.
class WorkQueue {
 public:
  WorkQueue(uint32_t capacity, uint32_t max_sges);

  struct Entry {
    uint32_t slot;
    uint32_t generation;
    uint8_t opcode;
    uint8_t sge_count;
    bool outstanding;
    // JavaScript did not ask for the completion of its success.
    bool silent;
    // The device was not asked for a completion either.
    bool unsignaled;
  };

  bool full() const { return tail_ - head_ == capacity_; }
  uint32_t in_flight() const { return in_flight_; }
  // Requests since the last one that the device will report.
  uint32_t unsignaled_run() const { return unsignaled_run_; }
  uint32_t capacity() const { return capacity_; }

  // Takes a request up; its position goes into the wr_id. Not when full.
  uint32_t Push(const Entry& entry, MemoryRegion* const* regions);
  // Takes the newest request back, which the provider refused.
  void Pop();
  // The same for so many of them; `each` sees them before, oldest first.
  void PopNewest(uint32_t count, const std::function<void(const Entry&)>& each);

  // The outstanding entry at a position, null if there is none.
  const Entry* At(uint32_t position) const;
  // The request has completed: lets its regions go. A success also retires the unsignaled requests before it.
  void Retire(uint32_t position, bool success);
  // Lets everything go, oldest first; `each` sees every request that was outstanding.
  void Clear(const std::function<void(const Entry&)>& each);

  static constexpr uint32_t kPositionMask = 0x7fff'ffff;

 private:
  uint32_t Index(uint32_t position) const { return position & mask_; }
  void Finish(uint32_t position);
  void Advance();

  const uint32_t capacity_;
  const uint32_t max_sges_;
  const uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  // Up to here unsignaled requests have been retired.
  uint32_t retired_ = 0;
  uint32_t in_flight_ = 0;
  uint32_t unsignaled_run_ = 0;
  std::vector<Entry> entries_;
  std::vector<MemoryRegion*> regions_;
};

}  // namespace node_rdma
