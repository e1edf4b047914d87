#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <memory>

#include "memory/memory_region.h"
#include "support/object.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class MemoryWindow : public Object {
 public:
  static constexpr Kind kKind = Kind::kMemoryWindow;

  MemoryWindow(std::shared_ptr<ProtectionDomain> pd, ibv_mw* mw);
  ~MemoryWindow() override;

  ibv_mw* mw() const { return mw_; }
  const ProtectionDomain* protection_domain() const { return pd_.get(); }
  bool second_type() const { return mw_->type == IBV_MW_TYPE_2; }

  // A binding was posted. The device refuses to let a region go that a window is bound to, and an
  // invalidation by the peer is nothing that we see: the region stays in use until the window is closed or
  // bound to another.
  void Bound(std::shared_ptr<MemoryRegion> region, uint32_t rkey);

  static void Export(Napi::Object exports);

 private:
  void LetRegionGo();

  const Membership<ProtectionDomain> pd_;
  ibv_mw* const mw_;
  std::shared_ptr<MemoryRegion> region_;
};

}  // namespace node_rdma
