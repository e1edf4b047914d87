#include "verbs/device.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
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
  ExportFunction(exports, "listDevices", ListDevices);
  ExportFunction(exports, "openDevice", OpenDevice);
  ExportFunction(exports, "describeDevice", DescribeDevice);
  ExportQueries(exports);
  ExportFunction(exports, "closeDevice", CloseDevice);
}

}  // namespace node_rdma
