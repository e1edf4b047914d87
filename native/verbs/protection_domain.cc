#include "verbs/protection_domain.h"

#include <cerrno>
#include <utility>

#include "support/arguments.h"
#include "verbs/device.h"

namespace node_rdma {

namespace {

Napi::Value AllocatePd(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_pd* pd = ibv_alloc_pd(device->context()->verbs());
  if (pd == nullptr) return arguments.Fail(errno, "ibv_alloc_pd");
  return Napi::Number::New(
      info.Env(), arguments.environment()->Adopt(std::make_shared<ProtectionDomain>(device->context(), pd)));
}

Napi::Value DeallocatePd(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (pd->users() > 0) return arguments.Fail(EBUSY, "ibv_dealloc_pd");
  pd->Close();
  arguments.environment()->handles().Remove(pd->handle());
  return info.Env().Undefined();
}

}  // namespace

ProtectionDomain::ProtectionDomain(std::shared_ptr<Context> context, ibv_pd* pd)
    : Object(kKind), context_(std::move(context)), pd_(pd) {}

ProtectionDomain::~ProtectionDomain() { ibv_dealloc_pd(pd_); }

void ProtectionDomain::Export(Napi::Object exports) {
  ExportFunction(exports, "allocatePd", AllocatePd);
  ExportFunction(exports, "deallocatePd", DeallocatePd);
}

}  // namespace node_rdma
