#include <arpa/inet.h>

#include <cerrno>
#include <utility>

#include "cm/address.h"
#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "verbs/device.h"

namespace node_rdma {

namespace {

Napi::Value CreateId(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port_space = arguments.U32(1, "portSpace", 0, UINT16_MAX);
  const std::shared_ptr<EventChannel> channel = arguments.HandleAt<EventChannel>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  rdma_cm_id* verbs = nullptr;
  if (rdma_create_id(channel->channel(), &verbs, nullptr, static_cast<rdma_port_space>(port_space)) != 0) {
    return arguments.Fail(errno, "rdma_create_id");
  }
  auto id = std::make_shared<CmId>(arguments.environment(), channel, verbs, CmId::Role::kNew);
  const uint32_t handle = arguments.environment()->Adopt(id);
  verbs->context = reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
  return Napi::Number::New(info.Env(), handle);
}

bool CheckAddress(Arguments& arguments, const std::string& text, uint32_t port, sockaddr_storage* address) {
  if (!arguments.ok()) return false;
  if (ParseAddress(text, static_cast<uint16_t>(port), address)) return true;
  arguments.Fail(EINVAL, "getaddrinfo");
  return false;
}

bool ReadAddress(Arguments& arguments, size_t index, const char* name, sockaddr_storage* address) {
  const Napi::Object object = arguments.Object(index, name);
  const std::string text = arguments.String(object, "address");
  const uint32_t port = arguments.U32(object, "port", 0, UINT16_MAX);
  return CheckAddress(arguments, text, port, address);
}

Napi::Value BindAddress(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string text = arguments.String(1, "address");
  const uint32_t port = arguments.U32(2, "port", 0, UINT16_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  sockaddr_storage address;
  if (!CheckAddress(arguments, text, port, &address)) return info.Env().Undefined();
  return arguments.Finish(id->Bind(address), "rdma_bind_addr");
}

Napi::Value ResolveAddress(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const bool any_source = arguments.IsNull(1);
  sockaddr_storage source;
  sockaddr_storage destination;
  if (!any_source && !ReadAddress(arguments, 1, "source", &source)) return info.Env().Undefined();
  if (!ReadAddress(arguments, 2, "destination", &destination)) return info.Env().Undefined();
  const uint32_t timeout = arguments.U32(3, "timeout", 0, INT32_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error =
      id->ResolveAddress(any_source ? nullptr : &source, &destination, static_cast<int>(timeout));
  return arguments.Finish(error, "rdma_resolve_addr");
}

Napi::Value ResolveRoute(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t timeout = arguments.U32(1, "timeout", 0, INT32_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->ResolveRoute(static_cast<int>(timeout)), "rdma_resolve_route");
}

Napi::Value Listen(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t backlog = arguments.U32(1, "backlog", 0, INT32_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->Listen(static_cast<int>(backlog)), "rdma_listen");
}

Napi::Value SetIdOption(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t option = arguments.U32(1, "option", RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_ACK_TIMEOUT);
  const uint32_t value = arguments.U32(2, "value", 0, UINT8_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const bool switched = option == RDMA_OPTION_ID_REUSEADDR || option == RDMA_OPTION_ID_AFONLY;
  const auto byte = static_cast<uint8_t>(value);
  const int flag = value != 0 ? 1 : 0;
  const int error = switched ? id->SetOption(RDMA_OPTION_ID, static_cast<int>(option), &flag, sizeof flag)
                             : id->SetOption(RDMA_OPTION_ID, static_cast<int>(option), &byte, sizeof byte);
  return arguments.Finish(error, "rdma_set_option");
}

Napi::Value MigrateId(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  const std::shared_ptr<EventChannel> channel = arguments.HandleAt<EventChannel>(1);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->Migrate(channel), "rdma_migrate_id");
}

Napi::Value DestroyId(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  id->Destroy([deferred] { deferred.Resolve(deferred.Env().Undefined()); });
  return deferred.Promise();
}

Napi::Value DescribeId(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const TextAddress local = FormatAddress(rdma_get_local_addr(id->id()));
  const TextAddress remote = FormatAddress(rdma_get_peer_addr(id->id()));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("localAddress", local.address);
  result.Set("localPort", ntohs(rdma_get_src_port(id->id())));
  result.Set("localFamily", local.family);
  result.Set("remoteAddress", remote.address);
  result.Set("remotePort", ntohs(rdma_get_dst_port(id->id())));
  result.Set("remoteFamily", remote.family);
  result.Set("portNumber", id->id()->port_num);
  return result;
}

Napi::Value DeviceOfId(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (id->id()->verbs == nullptr) return Napi::Number::New(info.Env(), 0);
  int error = 0;
  std::shared_ptr<Context> context = ContextRegistry::Shared().Of(id->id()->verbs, &error);
  if (context == nullptr) return arguments.Fail(error, "ibv_open_device");
  return Napi::Number::New(info.Env(), Device::Make(arguments.environment(), std::move(context)));
}

Napi::Value GetDevices(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  int count = 0;
  ibv_context** devices = rdma_get_devices(&count);
  if (devices == nullptr) return arguments.Fail(errno, "rdma_get_devices");
  Napi::Array names = Napi::Array::New(info.Env());
  for (int i = 0; i < count; i++) {
    names.Set(static_cast<uint32_t>(i), ibv_get_device_name(devices[i]->device));
  }
  rdma_free_devices(devices);
  return names;
}

}  // namespace

void CmId::Export(Napi::Object exports) {
  ExportFunction(exports, "createId", CreateId);
  ExportFunction(exports, "bindAddress", BindAddress);
  ExportFunction(exports, "resolveAddress", node_rdma::ResolveAddress);
  ExportFunction(exports, "resolveRoute", node_rdma::ResolveRoute);
  ExportFunction(exports, "listen", node_rdma::Listen);
  ExportFunction(exports, "setIdOption", SetIdOption);
  ExportFunction(exports, "migrateId", MigrateId);
  ExportFunction(exports, "getDevices", GetDevices);
  ExportFunction(exports, "destroyId", DestroyId);
  ExportFunction(exports, "describeId", DescribeId);
  ExportFunction(exports, "deviceOfId", DeviceOfId);
}

}  // namespace node_rdma
