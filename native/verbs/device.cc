#include "verbs/device.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "support/arguments.h"

namespace node_rdma {

namespace {

std::string GuidOf(ibv_device* device) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, be64toh(ibv_get_device_guid(device)));
  return text;
}

Napi::Object Describe(Napi::Env env, ibv_device* device, const std::string& driver) {
  Napi::Object summary = Napi::Object::New(env);
  summary.Set("name", ibv_get_device_name(device));
  summary.Set("driver", driver);
  summary.Set("guid", GuidOf(device));
  summary.Set("nodeType", static_cast<int>(device->node_type));
  summary.Set("transport", static_cast<int>(device->transport_type));
  return summary;
}

Napi::Value ListDevices(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  // ENOSYS: the kernel has no uverbs, so there are no devices to list.
  if (devices == nullptr && errno != ENOSYS) return arguments.Fail(errno, "ibv_get_device_list");
  Napi::Array list = Napi::Array::New(info.Env());
  for (int i = 0; i < count && devices != nullptr; i++) {
    list.Set(static_cast<uint32_t>(i), Describe(info.Env(), devices[i], DriverOf(devices[i])));
  }
  if (devices != nullptr) ibv_free_device_list(devices);
  return list;
}

Napi::Value OpenDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string name = arguments.String(0, "name");
  if (!arguments.ok()) return info.Env().Undefined();
  int error = 0;
  std::shared_ptr<Context> context = ContextRegistry::Shared().Open(name, &error);
  if (context == nullptr) return arguments.Fail(error, "ibv_open_device");
  return Napi::Number::New(info.Env(), Device::Make(arguments.environment(), std::move(context)));
}

Napi::Value DescribeDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Describe(info.Env(), device->context()->verbs()->device, device->context()->driver());
}

Napi::Value QueryDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_device_attr attributes;
  const int error = ibv_query_device(device->context()->verbs(), &attributes);
  if (error != 0) return arguments.Fail(error, "ibv_query_device");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("firmwareVersion",
             std::string(attributes.fw_ver, strnlen(attributes.fw_ver, sizeof attributes.fw_ver)));
  result.Set("maxMrSize", Napi::BigInt::New(info.Env(), attributes.max_mr_size));
  const std::pair<const char*, double> numbers[] = {
      {"vendorId", attributes.vendor_id},
      {"vendorPartId", attributes.vendor_part_id},
      {"hardwareVersion", attributes.hw_ver},
      {"maxQp", attributes.max_qp},
      {"maxQpWr", attributes.max_qp_wr},
      {"deviceCapFlags", attributes.device_cap_flags},
      {"maxSge", attributes.max_sge},
      {"maxSgeRd", attributes.max_sge_rd},
      {"maxCq", attributes.max_cq},
      {"maxCqe", attributes.max_cqe},
      {"maxMr", attributes.max_mr},
      {"maxPd", attributes.max_pd},
      {"maxQpRdAtom", attributes.max_qp_rd_atom},
      {"maxQpInitRdAtom", attributes.max_qp_init_rd_atom},
      {"atomicCap", attributes.atomic_cap},
      {"maxMw", attributes.max_mw},
      {"maxMcastGrp", attributes.max_mcast_grp},
      {"maxAh", attributes.max_ah},
      {"maxSrq", attributes.max_srq},
      {"maxSrqWr", attributes.max_srq_wr},
      {"maxSrqSge", attributes.max_srq_sge},
      {"maxPkeys", attributes.max_pkeys},
      {"physPortCnt", attributes.phys_port_cnt},
  };
  for (const auto& [name, value] : numbers) result.Set(name, value);
  return result;
}

Napi::Value QueryPort(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_port_attr attributes;
  const int error = ibv_query_port(device->context()->verbs(), static_cast<uint8_t>(port), &attributes);
  if (error != 0) return arguments.Fail(error, "ibv_query_port");
  Napi::Object result = Napi::Object::New(info.Env());
  const std::pair<const char*, double> numbers[] = {
      {"state", attributes.state},
      {"maxMtu", attributes.max_mtu},
      {"activeMtu", attributes.active_mtu},
      {"gidTableLength", attributes.gid_tbl_len},
      {"portCapFlags", attributes.port_cap_flags},
      {"maxMessageSize", attributes.max_msg_sz},
      {"pkeyTableLength", attributes.pkey_tbl_len},
      {"lid", attributes.lid},
      {"activeWidth", attributes.active_width},
      {"activeSpeed", attributes.active_speed},
      {"physicalState", attributes.phys_state},
      {"linkLayer", attributes.link_layer},
  };
  for (const auto& [name, value] : numbers) result.Set(name, value);
  return result;
}

Napi::Value QueryGid(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const uint32_t index = arguments.U32(2, "index", 0, INT32_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_gid gid;
  errno = EINVAL;
  if (ibv_query_gid(device->context()->verbs(), static_cast<uint8_t>(port), static_cast<int>(index), &gid) !=
      0) {
    return arguments.Fail(errno, "ibv_query_gid");
  }
  Napi::Uint8Array bytes = Napi::Uint8Array::New(info.Env(), sizeof gid.raw);
  std::memcpy(bytes.Data(), gid.raw, sizeof gid.raw);
  return bytes;
}

Napi::Value CloseDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  device->Close();
  arguments.environment()->handles().Remove(device->handle());
  return info.Env().Undefined();
}

}  // namespace

Device::Device(Environment* environment, std::shared_ptr<Context> context)
    : Object(kKind), environment_(environment), context_(std::move(context)) {}

uint32_t Device::Make(Environment* environment, std::shared_ptr<Context> context) {
  auto device = std::make_shared<Device>(environment, std::move(context));
  const uint32_t handle = environment->Adopt(device);
  if (handle != 0) environment->WatchDevice(device->context(), handle);
  return handle;
}

void Device::Close() {
  if (!closing()) environment_->UnwatchDevice(context_.get(), handle());
  Object::Close();
}

void Device::DeliverEvent(Environment* environment, uint32_t type, uint32_t device, uint32_t object,
                          uint32_t port) {
  Napi::Env env(environment->env());
  const napi_value arguments[] = {Napi::Number::New(env, type), Napi::Number::New(env, device),
                                  Napi::Number::New(env, object), Napi::Number::New(env, port)};
  environment->Call(Environment::Hook::kAsyncEvent, 4, arguments);
}

void Device::DeliverToDevices(Environment* environment, const Context* context, uint32_t type,
                              uint32_t port) {
  for (const uint32_t device : environment->DevicesOf(context))
    DeliverEvent(environment, type, device, 0, port);
}

void Device::Export(Napi::Object exports) {
  Napi::Env env = exports.Env();
  exports.Set("listDevices", Napi::Function::New(env, ListDevices, "listDevices"));
  exports.Set("openDevice", Napi::Function::New(env, OpenDevice, "openDevice"));
  exports.Set("describeDevice", Napi::Function::New(env, DescribeDevice, "describeDevice"));
  exports.Set("queryDevice", Napi::Function::New(env, QueryDevice, "queryDevice"));
  exports.Set("queryPort", Napi::Function::New(env, QueryPort, "queryPort"));
  exports.Set("queryGid", Napi::Function::New(env, QueryGid, "queryGid"));
  exports.Set("closeDevice", Napi::Function::New(env, CloseDevice, "closeDevice"));
}

}  // namespace node_rdma
