#include "cm/connection_functions.h"

#include <cerrno>
#include <utility>

#include "cm/address.h"
#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "verbs/queue_pair.h"
#include "verbs/queue_pair_attributes.h"

namespace node_rdma {

namespace {

constexpr uint32_t kMaxPrivateData = 255;

void Settle(Environment* environment, const Napi::Promise::Deferred& deferred, int error,
            const char* syscall) {
  if (error == 0) {
    deferred.Resolve(deferred.Env().Undefined());
  } else {
    deferred.Reject(environment->MakeError(error, syscall));
  }
}

// The parameters without their private data, which comes back beside them, and without the queue pair of the
// caller's own, whose handle goes to `own`: 0 for none.
std::vector<uint8_t> ReadParameters(Arguments& arguments, rdma_conn_param* parameters, uint32_t* own) {
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
  *own = arguments.U32(object, "queuePair");
  std::vector<uint8_t> data = arguments.OptionalBytes(object, "privateData").value_or(std::vector<uint8_t>());
  if (arguments.ok() && data.size() > kMaxPrivateData) arguments.Fail(EMSGSIZE, "rdma_conn_param");
  return data;
}

// The queue pair of a handle, or null for 0, and its number in the parameters.
std::shared_ptr<QueuePair> TakeOwn(Arguments& arguments, uint32_t handle, rdma_conn_param* parameters) {
  if (handle == 0) return nullptr;
  std::shared_ptr<QueuePair> own = arguments.Handle<QueuePair>(handle);
  if (own != nullptr) {
    parameters->qp_num = own->qp()->qp_num;
    parameters->srq = own->qp()->srq != nullptr ? 1 : 0;
  }
  return own;
}

// siw keeps the length in a byte and adds four bytes of its own: more wraps.
bool FitsDevice(const CmId& id, const std::vector<uint8_t>& private_data) {
  return !id.iwarp() || private_data.size() <= 251;
}

Napi::Value Connect(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  rdma_conn_param parameters;
  uint32_t own_handle = 0;
  std::vector<uint8_t> private_data = ReadParameters(arguments, &parameters, &own_handle);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  const std::shared_ptr<QueuePair> own = TakeOwn(arguments, own_handle, &parameters);
  if (!arguments.ok()) return info.Env().Undefined();
  if (!FitsDevice(*id, private_data)) return arguments.Fail(EMSGSIZE, "rdma_connect");
  Environment* environment = arguments.environment();
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  const int error = id->Connect(parameters, std::move(private_data), own, [environment, deferred](int error) {
    Settle(environment, deferred, error, "rdma_connect");
  });
  if (error != 0) return arguments.Fail(error, "rdma_connect");
  return deferred.Promise();
}

Napi::Value Accept(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  rdma_conn_param parameters;
  uint32_t own_handle = 0;
  const std::vector<uint8_t> private_data = ReadParameters(arguments, &parameters, &own_handle);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  const std::shared_ptr<QueuePair> own = TakeOwn(arguments, own_handle, &parameters);
  if (!arguments.ok()) return info.Env().Undefined();
  if (!FitsDevice(*id, private_data)) return arguments.Fail(EMSGSIZE, "rdma_accept");
  parameters.private_data = private_data.empty() ? nullptr : private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  return arguments.Finish(id->Accept(&parameters, own), "rdma_accept");
}

Napi::Value Reject(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const auto private_data = arguments.OptionalBytes(1, "privateData").value_or(std::vector<uint8_t>());
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (private_data.size() > kMaxPrivateData || !FitsDevice(*id, private_data)) {
    return arguments.Fail(EMSGSIZE, "rdma_reject");
  }
  return arguments.Finish(id->Reject(private_data), "rdma_reject");
}

Napi::Value Disconnect(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->Disconnect(), "rdma_disconnect");
}

Napi::Value Establish(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->Establish(), "rdma_establish");
}

Napi::Value Notify(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t event = arguments.U32(1, "event", 0, UINT8_MAX);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return arguments.Finish(id->Notify(static_cast<ibv_event_type>(event)), "rdma_notify");
}

Napi::Value InitialAttributes(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t state = arguments.U32(1, "state", IBV_QPS_RESET, IBV_QPS_ERR);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_qp_attr attributes{};
  attributes.qp_state = static_cast<ibv_qp_state>(state);
  int mask = 0;
  const int error = id->InitialAttributes(&attributes, &mask);
  if (error != 0) return arguments.Fail(error, "rdma_init_qp_attr");
  return DescribeQueuePairAttributes(info.Env(), attributes, mask);
}

Napi::Value JoinMulticast(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t group = arguments.U32(1, "group", 1);
  const std::string text = arguments.String(2, "address");
  const bool send_only = arguments.Boolean(3, "sendOnly");
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  sockaddr_storage address;
  if (!ParseAddress(text, 0, &address)) return arguments.Fail(EINVAL, "getaddrinfo");
  return arguments.Finish(id->JoinGroup(group, address, send_only), "rdma_join_multicast_ex");
}

Napi::Value LeaveMulticast(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t group = arguments.U32(1, "group", 1);
  const std::shared_ptr<CmId> id = arguments.HandleAt<CmId>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  Environment* environment = arguments.environment();
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  id->LeaveGroup(group, [environment, deferred](int error) {
    Settle(environment, deferred, error, "rdma_leave_multicast");
  });
  return deferred.Promise();
}

}  // namespace

void ExportConnectionFunctions(Napi::Object exports) {
  ExportFunction(exports, "connect", Connect);
  ExportFunction(exports, "accept", Accept);
  ExportFunction(exports, "reject", Reject);
  ExportFunction(exports, "establish", Establish);
  ExportFunction(exports, "notify", Notify);
  ExportFunction(exports, "disconnect", Disconnect);
  ExportFunction(exports, "initialAttributes", InitialAttributes);
  ExportFunction(exports, "joinMulticast", JoinMulticast);
  ExportFunction(exports, "leaveMulticast", LeaveMulticast);
}

}  // namespace node_rdma
