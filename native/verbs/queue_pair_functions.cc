#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "support/result.h"
#include "verbs/queue_pair.h"
#include "verbs/queue_pair_attributes.h"
#include "verbs/shared_receive_queue.h"

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
  const uint32_t srq_handle = arguments.U32(options, "srq");
  QueuePair::Parents parents;
  parents.pd = arguments.Handle<ProtectionDomain>(pd_handle);
  parents.send_cq = arguments.Handle<CompletionQueue>(send_cq_handle);
  parents.receive_cq = arguments.Handle<CompletionQueue>(receive_cq_handle);
  if (cm_id_handle != 0) parents.cm_id = arguments.Handle<CmId>(cm_id_handle);
  if (srq_handle != 0) parents.srq = arguments.Handle<SharedReceiveQueue>(srq_handle);
  if (!arguments.ok()) return info.Env().Undefined();

  const char* syscall = parents.cm_id == nullptr ? "ibv_create_qp" : "rdma_create_qp";
  const Context* context = parents.pd->context().get();
  if (parents.send_cq->context().get() != context || parents.receive_cq->context().get() != context) {
    return arguments.Fail(EINVAL, syscall);
  }
  // siw and every other iWARP device: connections only (RFC 5040).
  if (context->iwarp() && attributes.qp_type != IBV_QPT_RC) return arguments.Fail(EOPNOTSUPP, syscall);
  if (parents.srq != nullptr) {
    if (parents.srq->protection_domain()->context().get() != context) return arguments.Fail(EINVAL, syscall);
    attributes.srq = parents.srq->srq();
    attributes.cap.max_recv_wr = 0;
    attributes.cap.max_recv_sge = 0;
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
  const std::shared_ptr<SharedReceiveQueue> srq = parents.srq;
  auto queue_pair = std::make_shared<QueuePair>(environment, std::move(parents), qp, attributes);
  const uint32_t handle = environment->Adopt(queue_pair);
  if (handle == 0) return info.Env().Undefined();
  if (cm_id != nullptr) cm_id->SetQueuePair(queue_pair);
  if (srq != nullptr) srq->Attach(qp->qp_num, handle, queue_pair->datagrams());
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

Napi::Value QueuePairInFlight(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, queue_pair->sends().in_flight());
  result.Set(1u, queue_pair->receives().in_flight());
  return result;
}

using ChangeGroup = int (*)(ibv_qp*, const ibv_gid*, uint16_t);

Napi::Value ChangeMulticastGroup(const Napi::CallbackInfo& info, ChangeGroup change, const char* syscall) {
  Arguments arguments(info);
  const auto bytes = arguments.OptionalBytes(1, "gid");
  const auto lid = static_cast<uint16_t>(arguments.U32(2, "lid", 0, UINT16_MAX));
  ibv_gid gid;
  if (!bytes.has_value() || bytes->size() != sizeof gid.raw) arguments.FailType("gid", "16 bytes");
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  std::memcpy(gid.raw, bytes->data(), sizeof gid.raw);
  if (queue_pair->iwarp()) return arguments.Fail(EOPNOTSUPP, syscall);
  if (!queue_pair->datagrams()) return arguments.Fail(EINVAL, syscall);
  const int error = ErrnoOf(change(queue_pair->qp(), &gid, lid));
  if (error != 0) return arguments.Fail(error, syscall);
  return info.Env().Undefined();
}

Napi::Value AttachMulticast(const Napi::CallbackInfo& info) {
  return ChangeMulticastGroup(info, ibv_attach_mcast, "ibv_attach_mcast");
}

Napi::Value DetachMulticast(const Napi::CallbackInfo& info) {
  return ChangeMulticastGroup(info, ibv_detach_mcast, "ibv_detach_mcast");
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
  ExportFunction(exports, "createQueuePair", CreateQueuePair);
  ExportQueuePairAttributes(exports);
  ExportFunction(exports, "attachMulticast", AttachMulticast);
  ExportFunction(exports, "detachMulticast", DetachMulticast);
  ExportFunction(exports, "queuePairInFlight", QueuePairInFlight);
  ExportFunction(exports, "destroyQueuePair", DestroyQueuePair);
}

}  // namespace node_rdma
