#include <cerrno>
#include <utility>

#include "environment.h"
#include "support/arguments.h"
#include "support/result.h"
#include "verbs/shared_receive_queue.h"

namespace node_rdma {

namespace {

constexpr uint32_t kMaxRequests = 1u << 20;

Napi::Value CreateSharedReceiveQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = arguments.U32(1, "maxRequests", 1, kMaxRequests);
  attributes.attr.max_sge = arguments.U32(2, "maxSges", 1, kMaxSges);
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_srq* srq = ibv_create_srq(pd->pd(), &attributes);
  if (srq == nullptr) return arguments.Fail(errno, "ibv_create_srq");
  Environment* environment = arguments.environment();
  const uint32_t handle =
      environment->Adopt(std::make_shared<SharedReceiveQueue>(environment, pd, srq, attributes.attr));
  if (handle == 0) return info.Env().Undefined();
  ContextRegistry::Shared().Route(srq, environment, handle);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("handle", handle);
  result.Set("maxRequests", attributes.attr.max_wr);
  result.Set("maxSges", attributes.attr.max_sge);
  return result;
}

Napi::Value ArmSharedReceiveQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_srq_attr attributes{};
  attributes.srq_limit = arguments.U32(1, "limit", 0, kMaxRequests);
  const std::shared_ptr<SharedReceiveQueue> srq = arguments.HandleAt<SharedReceiveQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error = ErrnoOf(ibv_modify_srq(srq->srq(), &attributes, IBV_SRQ_LIMIT));
  if (error != 0) return arguments.Fail(error, "ibv_modify_srq");
  return info.Env().Undefined();
}

Napi::Value QuerySharedReceiveQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<SharedReceiveQueue> srq = arguments.HandleAt<SharedReceiveQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_srq_attr attributes{};
  const int error = ErrnoOf(ibv_query_srq(srq->srq(), &attributes));
  if (error != 0) return arguments.Fail(error, "ibv_query_srq");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("maxRequests", attributes.max_wr);
  result.Set("maxSges", attributes.max_sge);
  result.Set("limit", attributes.srq_limit);
  return result;
}

Napi::Value SharedReceiveQueueInFlight(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<SharedReceiveQueue> srq = arguments.HandleAt<SharedReceiveQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), srq->receives().in_flight());
}

Napi::Value DestroySharedReceiveQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<SharedReceiveQueue> srq = arguments.HandleAt<SharedReceiveQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (srq->users() > 0) return arguments.Fail(EBUSY, "ibv_destroy_srq");
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  srq->Destroy([deferred] { deferred.Resolve(deferred.Env().Undefined()); });
  return deferred.Promise();
}

}  // namespace

void SharedReceiveQueue::Export(Napi::Object exports) {
  ExportFunction(exports, "createSharedReceiveQueue", CreateSharedReceiveQueue);
  ExportFunction(exports, "armSharedReceiveQueue", ArmSharedReceiveQueue);
  ExportFunction(exports, "querySharedReceiveQueue", QuerySharedReceiveQueue);
  ExportFunction(exports, "sharedReceiveQueueInFlight", SharedReceiveQueueInFlight);
  ExportFunction(exports, "destroySharedReceiveQueue", DestroySharedReceiveQueue);
}

}  // namespace node_rdma
