#include "support/handle_table.h"

#include <algorithm>
#include <utility>

namespace node_rdma {

uint32_t HandleTable::Add(std::shared_ptr<Object> object) {
  uint32_t index;
  if (free_.size() > kRest || (entries_.size() > kIndexMask && !free_.empty())) {
    index = free_.front();
    free_.pop_front();
  } else if (entries_.size() <= kIndexMask) {
    index = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    return 0;
  }
  Entry& entry = entries_[index];
  const uint32_t handle = entry.generation << kIndexBits | index;
  object->set_handle(handle);
  entry.object = std::move(object);
  return handle;
}

void HandleTable::Remove(uint32_t handle) {
  if (EntryOf(handle) == nullptr) return;
  const uint32_t index = handle & kIndexMask;
  Entry& entry = entries_[index];
  entry.generation = entry.generation == kLastGeneration ? 1 : entry.generation + 1;
  free_.push_back(index);
  // Last: it may be the last reference, and what the destructor does must find the table in order.
  std::shared_ptr<Object> object = std::move(entry.object);
}

std::vector<std::shared_ptr<Object>> HandleTable::TakeAll() {
  std::vector<std::shared_ptr<Object>> objects;
  for (Entry& entry : entries_) {
    if (entry.object != nullptr) objects.push_back(std::move(entry.object));
  }
  entries_.clear();
  free_.clear();
  std::stable_sort(objects.begin(), objects.end(),
                   [](const auto& a, const auto& b) { return a->kind() < b->kind(); });
  return objects;
}

}  // namespace node_rdma
