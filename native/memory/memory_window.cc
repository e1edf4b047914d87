#include "memory/memory_window.h"

#include <cerrno>
#include <utility>

#include "environment.h"
#include "ring/request_fields.h"
#include "support/arguments.h"
#include "support/result.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

Napi::Value AllocateMemoryWindow(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const auto type = static_cast<ibv_mw_type>(arguments.U32(1, "type", IBV_MW_TYPE_1, IBV_MW_TYPE_2));
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (pd->context()->attributes().max_mw == 0) return arguments.Fail(EOPNOTSUPP, "ibv_alloc_mw");
  ibv_mw* mw = ibv_alloc_mw(pd->pd(), type);
  if (mw == nullptr) return arguments.Fail(errno, "ibv_alloc_mw");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("rkey", mw->rkey);
  const uint32_t handle = arguments.environment()->Adopt(std::make_shared<MemoryWindow>(pd, mw));
  if (handle == 0) return info.Env().Undefined();
  result.Set("handle", handle);
  return result;
}

// ibv_bind_mw: the provider posts it to the send queue by itself, so what was submitted before goes first.
// The new remote key; the completion comes as that of any request.
Napi::Value BindMemoryWindow(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t region_handle = arguments.U32(2, "region");
  const uint64_t offset = arguments.Size(3, "offset", 0, uint64_t{1} << 40);
  const uint64_t length = arguments.Size(4, "length", 0, UINT32_MAX);
  const uint32_t access = arguments.U32(5, "access", 0, kWindowAccess);
  const uint32_t slot = arguments.U32(6, "slot");
  const uint32_t generation = arguments.U32(7, "generation");
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  const std::shared_ptr<MemoryWindow> window = arguments.HandleAt<MemoryWindow>(1);
  const std::shared_ptr<MemoryRegion> region = arguments.Handle<MemoryRegion>(region_handle);
  if (!arguments.ok()) return info.Env().Undefined();
  constexpr const char* kSyscall = "ibv_bind_mw";
  if (window->second_type() || window->protection_domain() != queue_pair->protection_domain() ||
      region->protection_domain() != queue_pair->protection_domain()) {
    return arguments.Fail(EINVAL, kSyscall);
  }
  if (!region->Allows(IBV_ACCESS_MW_BIND)) return arguments.Fail(EACCES, kSyscall);
  if (offset > region->length() || length > region->length() - offset)
    return arguments.Fail(EFAULT, kSyscall);
  arguments.environment()->requests().Flush();
  const int state = queue_pair->CheckSend(IBV_WR_BIND_MW);
  if (state != 0) return arguments.Fail(state, kSyscall);
  WorkQueue& sends = queue_pair->sends();
  if (sends.full()) return arguments.Fail(ENOMEM, kSyscall);
  MemoryRegion* regions[] = {region.get()};
  const uint32_t position = sends.Push({.slot = slot,
                                        .generation = generation,
                                        .opcode = IBV_WR_BIND_MW,
                                        .sge_count = 1,
                                        .outstanding = true,
                                        .silent = false,
                                        .unsignaled = false},
                                       regions);
  ibv_mw_bind bind{};
  bind.wr_id = queue_pair->WrId(position, false);
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {region->mr(), region->address() + offset, length, access};
  const int error = ErrnoOf(ibv_bind_mw(queue_pair->qp(), window->mw(), &bind));
  if (error != 0) {
    sends.Pop();
    return arguments.Fail(error, kSyscall);
  }
  window->Bound(region, window->mw()->rkey);
  return Napi::Number::New(info.Env(), window->mw()->rkey);
}

Napi::Value DeallocateMemoryWindow(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<MemoryWindow> window = arguments.HandleAt<MemoryWindow>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  window->Close();
  arguments.environment()->handles().Remove(window->handle());
  return info.Env().Undefined();
}

}  // namespace

MemoryWindow::MemoryWindow(std::shared_ptr<ProtectionDomain> pd, ibv_mw* mw)
    : Object(kKind), pd_(std::move(pd)), mw_(mw) {}

MemoryWindow::~MemoryWindow() {
  ibv_dealloc_mw(mw_);
  LetRegionGo();
}

void MemoryWindow::Bound(std::shared_ptr<MemoryRegion> region, uint32_t rkey) {
  LetRegionGo();
  region_ = std::move(region);
  region_->windows()++;
  mw_->rkey = rkey;
}

void MemoryWindow::LetRegionGo() {
  if (region_ == nullptr) return;
  region_->windows()--;
  region_ = nullptr;
}

void MemoryWindow::Export(Napi::Object exports) {
  ExportFunction(exports, "allocateMemoryWindow", AllocateMemoryWindow);
  ExportFunction(exports, "bindMemoryWindow", BindMemoryWindow);
  ExportFunction(exports, "deallocateMemoryWindow", DeallocateMemoryWindow);
}

}  // namespace node_rdma
