#include "support/object.h"

#include <atomic>

namespace node_rdma {

namespace {
std::array<std::atomic<int>, kKindCount> counts;
}

Object::Object(Kind kind) : kind_(kind) { counts[static_cast<size_t>(kind)]++; }

Object::~Object() { counts[static_cast<size_t>(kind_)]--; }

std::array<int, kKindCount> Object::Counts() {
  std::array<int, kKindCount> result;
  for (size_t i = 0; i < kKindCount; i++) result[i] = counts[i];
  return result;
}

const char* Object::NameOf(Kind kind) {
  switch (kind) {
    case Kind::kQueuePair:
      return "QueuePair";
    case Kind::kSharedReceiveQueue:
      return "SharedReceiveQueue";
    case Kind::kAddressHandle:
      return "AddressHandle";
    case Kind::kMemoryWindow:
      return "MemoryWindow";
    case Kind::kCompletionQueue:
      return "CompletionQueue";
    case Kind::kCompletionChannel:
      return "CompletionChannel";
    case Kind::kMemoryRegion:
      return "MemoryRegion";
    case Kind::kProtectionDomain:
      return "ProtectionDomain";
    case Kind::kCmId:
      return "CmId";
    case Kind::kEventChannel:
      return "EventChannel";
    case Kind::kDevice:
      return "Device";
  }
  return "Object";
}

}  // namespace node_rdma
