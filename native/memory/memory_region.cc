#include "memory/memory_region.h"

#include <cerrno>
#include <utility>

#include "environment.h"
#include "support/arguments.h"

namespace node_rdma {

namespace {

constexpr uint64_t kMaxLength = uint64_t{1} << 40;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

struct Request {
  uint64_t length;
  int access;
  bool huge_pages;
  std::shared_ptr<ProtectionDomain> pd;
};

Request ReadRequest(Arguments& arguments) {
  Request request;
  request.length = arguments.Size(1, "length", 1, kMaxLength);
  request.access = static_cast<int>(arguments.U32(2, "access", 0, kAccess));
  request.huge_pages = arguments.Boolean(3, "hugePages");
  request.pd = arguments.HandleAt<ProtectionDomain>(0);
  return request;
}

std::shared_ptr<MemoryRegion> Allocate(const Request& request) {
  std::shared_ptr<Mapping> mapping = Mapping::Make(request.length, request.huge_pages);
  if (mapping == nullptr) return nullptr;
  void* data = mapping->data();
  return MemoryRegion::Register(request.pd, data, request.length, request.access, std::move(mapping));
}

Napi::Value AllocateMemory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const Request request = ReadRequest(arguments);
  if (!arguments.ok()) return info.Env().Undefined();
  std::shared_ptr<MemoryRegion> region = Allocate(request);
  if (region == nullptr) return arguments.Fail(errno, "ibv_reg_mr");
  return MemoryRegion::Describe(arguments.environment(), region);
}

// The region travels from the pool's thread to the loop's; if the environment ends meanwhile it is let go.
struct Result {
  std::shared_ptr<MemoryRegion> region;
};

Napi::Value AllocateMemoryAsync(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const Request request = ReadRequest(arguments);
  if (!arguments.ok()) return info.Env().Undefined();
  Environment* environment = arguments.environment();
  auto result = std::make_shared<Result>();
  return environment->RunInPool(
      "ibv_reg_mr",
      [request, result] {
        result->region = Allocate(request);
        return result->region == nullptr ? errno : 0;
      },
      [environment, result] {
        return MemoryRegion::Describe(environment, std::exchange(result->region, nullptr));
      });
}

Napi::Value RegisterMemory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const Napi::Object view = arguments.Object(1, "view");
  const int access = static_cast<int>(arguments.U32(2, "access", 0, kAccess));
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  void* data = nullptr;
  size_t length = 0;
  if (view.IsTypedArray()) {
    // Asked of Node-API itself: this works on a SharedArrayBuffer too.
    napi_typedarray_type type;
    napi_get_typedarray_info(info.Env(), view, &type, &length, &data, nullptr, nullptr);
    if (type != napi_uint8_array) data = nullptr;
  }
  if (data == nullptr || length == 0) {
    arguments.FailType("view", "a Uint8Array that is neither empty nor detached");
    return info.Env().Undefined();
  }
  Environment* environment = arguments.environment();
  auto result = std::make_shared<Result>();
  const uint32_t buffer = environment->HoldBuffer(view);
  return environment->RunInPool(
      "ibv_reg_mr",
      [pd, data, length, access, result] {
        result->region = MemoryRegion::Register(pd, data, length, access, nullptr);
        return result->region == nullptr ? errno : 0;
      },
      [environment, result, buffer] {
        result->region->set_held_buffer(buffer);
        const Napi::Value region =
            MemoryRegion::Describe(environment, std::exchange(result->region, nullptr));
        if (region.IsUndefined()) environment->ReleaseBuffer(buffer);
        return region;
      },
      [environment, buffer] { environment->ReleaseBuffer(buffer); });
}

Napi::Value DeregisterMemory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<MemoryRegion> region = arguments.HandleAt<MemoryRegion>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (region->in_flight() > 0 || region->windows() > 0) return arguments.Fail(EBUSY, "ibv_dereg_mr");
  Environment* environment = arguments.environment();
  region->Close();
  environment->handles().Remove(region->handle());
  const uint32_t buffer = region->held_buffer();
  // The pool's copy of the region is the last one.
  return environment->RunInPool(
      "ibv_dereg_mr", [region] { return 0; },
      [environment, buffer]() -> Napi::Value {
        environment->ReleaseBuffer(buffer);
        return Napi::Env(environment->env()).Undefined();
      });
}

Napi::Value ReregisterMemory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int access = static_cast<int>(arguments.U32(1, "access", 0, kAccess));
  const std::shared_ptr<MemoryRegion> region = arguments.HandleAt<MemoryRegion>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (region->in_flight() > 0 || region->windows() > 0) return arguments.Fail(EBUSY, "ibv_rereg_mr");
  const int error = region->Reregister(access);
  if (error != 0) return arguments.Fail(error, "ibv_rereg_mr");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("lkey", region->mr()->lkey);
  result.Set("rkey", region->mr()->rkey);
  return result;
}

Napi::Value MemoryInFlight(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<MemoryRegion> region = arguments.HandleAt<MemoryRegion>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), region->in_flight() + region->windows());
}

}  // namespace

std::shared_ptr<MemoryRegion> MemoryRegion::Register(std::shared_ptr<ProtectionDomain> pd, void* data,
                                                     size_t length, int access,
                                                     std::shared_ptr<Mapping> mapping) {
  ibv_mr* mr = ibv_reg_mr(pd->pd(), data, length, access);
  if (mr == nullptr) return nullptr;
  return std::make_shared<MemoryRegion>(std::move(pd), mr, access, std::move(mapping));
}

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> pd, ibv_mr* mr, int access,
                           std::shared_ptr<Mapping> mapping)
    : Object(kKind), pd_(std::move(pd)), mr_(mr), access_(access), mapping_(std::move(mapping)) {}

int MemoryRegion::Reregister(int access) {
  errno = EINVAL;
  if (ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access) != 0) return errno;
  access_ = access;
  return 0;
}

MemoryRegion::~MemoryRegion() { ibv_dereg_mr(mr_); }

Napi::Value MemoryRegion::Describe(Environment* environment, const std::shared_ptr<MemoryRegion>& region) {
  Napi::Env env(environment->env());
  Napi::Object result = Napi::Object::New(env);
  if (region->mapping_ != nullptr) {
    auto* shown = new std::shared_ptr<Mapping>(region->mapping_);
    napi_value buffer;
    const napi_status status = napi_create_external_arraybuffer(
        env, region->mapping_->data(), region->length(),
        [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<Mapping>*>(hint); }, shown,
        &buffer);
    if (status != napi_ok) {
      delete shown;
      environment->Throw(status == napi_no_external_buffers_allowed ? EOPNOTSUPP : ENOMEM,
                         "napi_create_external_arraybuffer");
      return env.Undefined();
    }
    result.Set("buffer", Napi::Value(env, buffer));
  } else {
    result.Set("buffer", env.Null());
  }
  const uint32_t handle = environment->Adopt(region);
  if (handle == 0) return env.Undefined();
  result.Set("handle", handle);
  result.Set("lkey", region->mr_->lkey);
  result.Set("rkey", region->mr_->rkey);
  result.Set("address", Napi::BigInt::New(env, region->address()));
  result.Set("length", static_cast<double>(region->length()));
  return result;
}

void MemoryRegion::Export(Napi::Object exports) {
  ExportFunction(exports, "allocateMemory", AllocateMemory);
  ExportFunction(exports, "allocateMemoryAsync", AllocateMemoryAsync);
  ExportFunction(exports, "registerMemory", RegisterMemory);
  ExportFunction(exports, "deregisterMemory", DeregisterMemory);
  ExportFunction(exports, "reregisterMemory", ReregisterMemory);
  ExportFunction(exports, "memoryInFlight", MemoryInFlight);
}

}  // namespace node_rdma
