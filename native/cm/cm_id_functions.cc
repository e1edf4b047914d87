#include <cerrno>
#include <utility>

#include "cm/address.h"
#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "verbs/device.h"

namespace node_rdma {

namespace {

constexpr uint32_t kMaxPrivateData = 255;

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

Napi::Value Finish(Arguments& arguments, int error, const char* syscall) {
  return error == 0 ? arguments.env().Undefined() : arguments.Fail(error, syscall);
}

Napi::Value BindAddress(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string text = arguments.String(1, "address");
  const uint32_t port = arguments.U32(2, "port", 0, UINT16_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  sockaddr_storage address;
  if (!CheckAddress(arguments, text, port, &address)) return info.Env().Undefined();
  return Finish(arguments, id->Bind(address), "rdma_bind_addr");
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
  return Finish(arguments, error, "rdma_resolve_addr");
}

Napi::Value ResolveRoute(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t timeout = arguments.U32(1, "timeout", 0, INT32_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Finish(arguments, id->ResolveRoute(static_cast<int>(timeout)), "rdma_resolve_route");
}

Napi::Value Listen(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t backlog = arguments.U32(1, "backlog", 0, INT32_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Finish(arguments, id->Listen(static_cast<int>(backlog)), "rdma_listen");
}

// The parameters without their private data, which comes back beside them.
std::vector<uint8_t> ReadParameters(Arguments& arguments, rdma_conn_param* parameters) {
  const Napi::Object object = arguments.Object(1, "parameters");
  *parameters = {};
  const auto u8 = [&](const char* name, uint32_t max) {
    return static_cast<uint8_t>(arguments.U32(object, name, 0, max));
  };
  parameters->responder_resources = u8("responderResources", UINT8_MAX);
  parameters->initiator_depth = u8("initiatorDepth", UINT8_MAX);
  parameters->flow_control = u8("flowControl", 1);
  parameters->retry_count = u8("retryCount", 7);
  parameters->rnr_retry_count = u8("rnrRetryCount", 7);
  std::vector<uint8_t> data = arguments.OptionalBytes(object, "privateData").value_or(std::vector<uint8_t>());
  if (arguments.ok() && data.size() > kMaxPrivateData) arguments.Fail(EMSGSIZE, "rdma_conn_param");
  return data;
}

// siw keeps the length in a byte and adds four bytes of its own: more wraps.
bool FitsDevice(const CmId& id, const std::vector<uint8_t>& private_data) {
  return id.id()->verbs == nullptr || id.id()->verbs->device->transport_type != IBV_TRANSPORT_IWARP ||
         private_data.size() <= 251;
}

Napi::Value Connect(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  rdma_conn_param parameters;
  std::vector<uint8_t> private_data = ReadParameters(arguments, &parameters);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (!FitsDevice(*id, private_data)) return arguments.Fail(EMSGSIZE, "rdma_connect");
  Environment* environment = arguments.environment();
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  const int error = id->Connect(parameters, std::move(private_data), [environment, deferred](int error) {
    if (error == 0) {
      deferred.Resolve(deferred.Env().Undefined());
    } else {
      deferred.Reject(environment->MakeError(error, "rdma_connect"));
    }
  });
  if (error != 0) return arguments.Fail(error, "rdma_connect");
  return deferred.Promise();
}

Napi::Value Accept(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  rdma_conn_param parameters;
  const std::vector<uint8_t> private_data = ReadParameters(arguments, &parameters);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (!FitsDevice(*id, private_data)) return arguments.Fail(EMSGSIZE, "rdma_accept");
  parameters.private_data = private_data.empty() ? nullptr : private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  return Finish(arguments, id->Accept(&parameters), "rdma_accept");
}

Napi::Value Reject(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const auto private_data = arguments.OptionalBytes(1, "privateData").value_or(std::vector<uint8_t>());
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (private_data.size() > kMaxPrivateData || !FitsDevice(*id, private_data)) {
    return arguments.Fail(EMSGSIZE, "rdma_reject");
  }
  return Finish(arguments, id->Reject(private_data), "rdma_reject");
}

Napi::Value Disconnect(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Finish(arguments, id->Disconnect(), "rdma_disconnect");
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
  result.Set("localPort", local.port);
  result.Set("localFamily", local.family);
  result.Set("remoteAddress", remote.address);
  result.Set("remotePort", remote.port);
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

}  // namespace

void CmId::Export(Napi::Object exports) {
  Napi::Env env = exports.Env();
  exports.Set("createId", Napi::Function::New(env, CreateId, "createId"));
  exports.Set("bindAddress", Napi::Function::New(env, BindAddress, "bindAddress"));
  exports.Set("resolveAddress", Napi::Function::New(env, node_rdma::ResolveAddress, "resolveAddress"));
  exports.Set("resolveRoute", Napi::Function::New(env, node_rdma::ResolveRoute, "resolveRoute"));
  exports.Set("listen", Napi::Function::New(env, node_rdma::Listen, "listen"));
  exports.Set("connect", Napi::Function::New(env, node_rdma::Connect, "connect"));
  exports.Set("accept", Napi::Function::New(env, node_rdma::Accept, "accept"));
  exports.Set("reject", Napi::Function::New(env, node_rdma::Reject, "reject"));
  exports.Set("disconnect", Napi::Function::New(env, node_rdma::Disconnect, "disconnect"));
  exports.Set("destroyId", Napi::Function::New(env, DestroyId, "destroyId"));
  exports.Set("describeId", Napi::Function::New(env, DescribeId, "describeId"));
  exports.Set("deviceOfId", Napi::Function::New(env, DeviceOfId, "deviceOfId"));
}

}  // namespace node_rdma
