#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "support/object.h"

namespace node_rdma {

// Gives each object of an environment a u32: 20 bits of index and 12 of generation, never 0. A freed index
// rests before it is used again, so a stale handle is an error and does not reach a newer object.
class HandleTable {
 public:
  // 0 when the table is full.
  uint32_t Add(std::shared_ptr<Object> object);
  void Remove(uint32_t handle);

  // The object, also one that is closing; null for a stale or wild handle or another kind.
  template <typename T>
  T* Find(uint32_t handle) const {
    const Entry* entry = EntryOf(handle);
    if (entry == nullptr || entry->object->kind() != T::kKind) return nullptr;
    return static_cast<T*>(entry->object.get());
  }

  template <typename T>
  std::shared_ptr<T> Share(uint32_t handle) const {
    const Entry* entry = EntryOf(handle);
    if (entry == nullptr || entry->object->kind() != T::kKind) return nullptr;
    return std::static_pointer_cast<T>(entry->object);
  }

  // Everything that is left, in the order of Kind; the table is empty afterwards.
  std::vector<std::shared_ptr<Object>> TakeAll();

 private:
  struct Entry {
    std::shared_ptr<Object> object;
    uint32_t generation = 1;
  };

  const Entry* EntryOf(uint32_t handle) const {
    const uint32_t index = handle & kIndexMask;
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    if (entry.object == nullptr || entry.generation != handle >> kIndexBits) return nullptr;
    return &entry;
  }

  static constexpr uint32_t kIndexBits = 20;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static constexpr uint32_t kLastGeneration = (1u << 12) - 1;
  static constexpr size_t kRest = 1024;

  std::vector<Entry> entries_;
  std::deque<uint32_t> free_;
};

}  // namespace node_rdma
