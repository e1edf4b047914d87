#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

constexpr uint32_t kMaxRequests = 1u << 20;

Napi::Value CreateQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const Napi::Object options = arguments.Object(0, "options");
  ibv_qp_init_attr attributes{};
  attributes.qp_type = static_cast<ibv_qp_type>(arguments.U32(options, "type", IBV_QPT_RC, IBV_QPT_UD));
  attributes.cap.max_send_wr = arguments.U32(options, "maxSendWr", 0, kMaxRequests);
  attributes.cap.max_recv_wr = arguments.U32(options, "maxReceiveWr", 0, kMaxRequests);
  attributes.cap.max_send_sge = arguments.U32(options, "maxSendSge", 0, kMaxSges);
  attributes.cap.max_recv_sge = arguments.U32(options, "maxReceiveSge", 0, kMaxSges);
  attributes.cap.max_inline_data = arguments.U32(options, "maxInlineData", 0, UINT16_MAX + 1);
  const uint32_t pd_handle = arguments.U32(options, "pd");
  const uint32_t send_cq_handle = arguments.U32(options, "sendCq");
  const uint32_t receive_cq_handle = arguments.U32(options, "receiveCq");
  const uint32_t cm_id_handle = arguments.U32(options, "cmId");
  QueuePair::Parents parents;
  parents.pd = arguments.Handle<ProtectionDomain>(pd_handle);
  parents.send_cq = arguments.Handle<CompletionQueue>(send_cq_handle);
  parents.receive_cq = arguments.Handle<CompletionQueue>(receive_cq_handle);
  if (cm_id_handle != 0) parents.cm_id = arguments.Handle<CmId>(cm_id_handle);
  if (!arguments.ok()) return info.Env().Undefined();

  const char* syscall = parents.cm_id == nullptr ? "ibv_create_qp" : "rdma_create_qp";
  const Context* context = parents.pd->context().get();
  if (parents.send_cq->context().get() != context || parents.receive_cq->context().get() != context) {
    return arguments.Fail(EINVAL, syscall);
  }
  attributes.send_cq = parents.send_cq->cq();
  attributes.recv_cq = parents.receive_cq->cq();
  ibv_qp* qp;
  if (parents.cm_id != nullptr) {
    const std::shared_ptr<CmId> cm_id = parents.cm_id;
    const int error = cm_id->CreateQueuePair(*context, parents.pd->pd(), &attributes);
    if (error != 0) return arguments.Fail(error, syscall);
    qp = cm_id->id()->qp;
  } else {
    qp = ibv_create_qp(parents.pd->pd(), &attributes);
    if (qp == nullptr) return arguments.Fail(errno, syscall);
  }
  Environment* environment = arguments.environment();
  const std::shared_ptr<CmId> cm_id = parents.cm_id;
  auto queue_pair = std::make_shared<QueuePair>(environment, std::move(parents), qp, attributes);
  const uint32_t handle = environment->Adopt(queue_pair);
  if (handle == 0) return info.Env().Undefined();
  if (cm_id != nullptr) cm_id->SetQueuePair(queue_pair);
  ContextRegistry::Shared().Route(qp, environment, handle);

  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("handle", handle);
  result.Set("number", qp->qp_num);
  result.Set("maxSendWr", attributes.cap.max_send_wr);
  result.Set("maxReceiveWr", attributes.cap.max_recv_wr);
  result.Set("maxSendSge", attributes.cap.max_send_sge);
  result.Set("maxReceiveSge", attributes.cap.max_recv_sge);
  result.Set("maxInlineData", attributes.cap.max_inline_data);
  return result;
}

void ReadAddressHandle(Arguments& arguments, Napi::Object object, ibv_ah_attr* attributes) {
  const auto gid = arguments.OptionalBytes(object, "gid");
  if (gid.has_value() && gid->size() == sizeof attributes->grh.dgid.raw) {
    attributes->is_global = 1;
    std::memcpy(attributes->grh.dgid.raw, gid->data(), gid->size());
  }
  attributes->grh.sgid_index = static_cast<uint8_t>(arguments.U32(object, "sgidIndex", 0, UINT8_MAX));
  attributes->grh.hop_limit = static_cast<uint8_t>(arguments.U32(object, "hopLimit", 0, UINT8_MAX));
  attributes->grh.traffic_class = static_cast<uint8_t>(arguments.U32(object, "trafficClass", 0, UINT8_MAX));
  attributes->grh.flow_label = arguments.U32(object, "flowLabel", 0, 0xfffff);
  attributes->dlid = static_cast<uint16_t>(arguments.U32(object, "lid", 0, UINT16_MAX));
  attributes->sl = static_cast<uint8_t>(arguments.U32(object, "serviceLevel", 0, 15));
  attributes->port_num = static_cast<uint8_t>(arguments.U32(object, "portNumber", 1, UINT8_MAX));
}

Napi::Value ModifyQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const Napi::Object object = arguments.Object(1, "attributes");
  ibv_qp_attr attributes{};
  int mask = 0;
  const auto read = [&](const char* name, int bit, uint32_t max, auto set) {
    const auto value = arguments.OptionalU32(object, name, max);
    if (!value.has_value()) return;
    mask |= bit;
    set(*value);
  };
  read("state", IBV_QP_STATE, IBV_QPS_ERR,
       [&](uint32_t v) { attributes.qp_state = static_cast<ibv_qp_state>(v); });
  read("pathMtu", IBV_QP_PATH_MTU, IBV_MTU_4096,
       [&](uint32_t v) { attributes.path_mtu = static_cast<ibv_mtu>(v); });
  read("qkey", IBV_QP_QKEY, UINT32_MAX, [&](uint32_t v) { attributes.qkey = v; });
  read("rqPsn", IBV_QP_RQ_PSN, 0xffffff, [&](uint32_t v) { attributes.rq_psn = v; });
  read("sqPsn", IBV_QP_SQ_PSN, 0xffffff, [&](uint32_t v) { attributes.sq_psn = v; });
  read("destQpNumber", IBV_QP_DEST_QPN, 0xffffff, [&](uint32_t v) { attributes.dest_qp_num = v; });
  read("accessFlags", IBV_QP_ACCESS_FLAGS, 0xf, [&](uint32_t v) { attributes.qp_access_flags = v; });
  const auto u8 = [](uint8_t* field) { return [field](uint32_t v) { *field = static_cast<uint8_t>(v); }; };
  read("pkeyIndex", IBV_QP_PKEY_INDEX, UINT16_MAX,
       [&](uint32_t v) { attributes.pkey_index = static_cast<uint16_t>(v); });
  read("portNumber", IBV_QP_PORT, UINT8_MAX, u8(&attributes.port_num));
  read("minRnrTimer", IBV_QP_MIN_RNR_TIMER, 31, u8(&attributes.min_rnr_timer));
  read("maxRdAtomic", IBV_QP_MAX_QP_RD_ATOMIC, UINT8_MAX, u8(&attributes.max_rd_atomic));
  read("maxDestRdAtomic", IBV_QP_MAX_DEST_RD_ATOMIC, UINT8_MAX, u8(&attributes.max_dest_rd_atomic));
  read("timeout", IBV_QP_TIMEOUT, 31, u8(&attributes.timeout));
  read("retryCount", IBV_QP_RETRY_CNT, 7, u8(&attributes.retry_cnt));
  read("rnrRetry", IBV_QP_RNR_RETRY, 7, u8(&attributes.rnr_retry));
  const Napi::Value address = arguments.Property(object, "addressHandle");
  if (arguments.ok() && address.IsObject()) {
    ReadAddressHandle(arguments, address.As<Napi::Object>(), &attributes.ah_attr);
    mask |= IBV_QP_AV;
  }
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error = ibv_modify_qp(queue_pair->qp(), &attributes, mask);
  if (error != 0) return arguments.Fail(error > 0 ? error : errno, "ibv_modify_qp");
  queue_pair->Modified(attributes, mask);
  return info.Env().Undefined();
}

Napi::Value QueryQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  constexpr int kMask = IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC;
  const int error = ibv_query_qp(queue_pair->qp(), &attributes, kMask, &initial);
  if (error != 0) return arguments.Fail(error > 0 ? error : errno, "ibv_query_qp");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("state", static_cast<int>(attributes.qp_state));
  result.Set("maxRdAtomic", static_cast<int>(attributes.max_rd_atomic));
  result.Set("maxDestRdAtomic", static_cast<int>(attributes.max_dest_rd_atomic));
  return result;
}

Napi::Value QueuePairInFlight(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, queue_pair->sends().in_flight());
  result.Set(1u, queue_pair->receives().in_flight());
  return result;
}

Napi::Value DestroyQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  queue_pair->Destroy([deferred] { deferred.Resolve(deferred.Env().Undefined()); });
  return deferred.Promise();
}

}  // namespace

void QueuePair::Export(Napi::Object exports) {
  Napi::Env env = exports.Env();
  exports.Set("createQueuePair", Napi::Function::New(env, CreateQueuePair, "createQueuePair"));
  exports.Set("modifyQueuePair", Napi::Function::New(env, ModifyQueuePair, "modifyQueuePair"));
  exports.Set("queryQueuePair", Napi::Function::New(env, QueryQueuePair, "queryQueuePair"));
  exports.Set("queuePairInFlight", Napi::Function::New(env, QueuePairInFlight, "queuePairInFlight"));
  exports.Set("destroyQueuePair", Napi::Function::New(env, DestroyQueuePair, "destroyQueuePair"));
}

}  // namespace node_rdma
