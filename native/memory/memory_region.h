#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "memory/mapping.h"
#include "support/object.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class Environment;

// Registered memory: pages of our own, or a part of a buffer that JavaScript had.
class MemoryRegion : public Object {
 public:
  static constexpr Kind kKind = Kind::kMemoryRegion;

  // Registers; null with errno set. On any thread. `mapping` is null for memory that is not ours.
  static std::shared_ptr<MemoryRegion> Register(std::shared_ptr<ProtectionDomain> pd, void* data,
                                                size_t length, int access, std::shared_ptr<Mapping> mapping);

  MemoryRegion(std::shared_ptr<ProtectionDomain> pd, ibv_mr* mr, int access,
               std::shared_ptr<Mapping> mapping);
  ~MemoryRegion() override;

  const ProtectionDomain* protection_domain() const { return pd_.get(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(mr_->addr); }
  uint64_t length() const { return mr_->length; }
  ibv_mr* mr() const { return mr_; }
  uint32_t lkey() const { return mr_->lkey; }
  bool Allows(int access) const { return (access_ & access) == access; }

  // Work requests in flight, on the environment's thread.
  int in_flight() const { return in_flight_; }
  void AddInFlight(int count) { in_flight_ += count; }
  // Memory windows bound to it; they are destroyed on other threads.
  std::atomic<int>& windows() { return windows_; }
  // Changes what peers may do; 0 or an errno.
  int Reregister(int access);

  // Number of the buffer that the environment holds for it; 0 for a mapping.
  uint32_t held_buffer() const { return held_buffer_; }
  void set_held_buffer(uint32_t number) { held_buffer_ = number; }

  // What JavaScript gets; shows the mapping as an ArrayBuffer if there is one.
  static Napi::Value Describe(Environment* environment, const std::shared_ptr<MemoryRegion>& region);

  static void Export(Napi::Object exports);

 private:
  const Membership<ProtectionDomain> pd_;
  ibv_mr* const mr_;
  int access_;
  const std::shared_ptr<Mapping> mapping_;
  uint32_t held_buffer_ = 0;
  int in_flight_ = 0;
  std::atomic<int> windows_ = 0;
};

}  // namespace node_rdma
