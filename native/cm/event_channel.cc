#include "cm/event_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/cm_id.h"
#include "environment.h"
#include "support/arguments.h"
#include "support/result.h"
#include "verbs/address_vector.h"

namespace node_rdma {

namespace {

// Of one turn of the loop; the descriptor stays readable for the rest.
constexpr int kEventsPerTurn = 64;

Napi::Value CreateEventChannel(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  errno = ENODEV;
  rdma_event_channel* verbs = rdma_create_event_channel();
  if (verbs == nullptr) return arguments.Fail(errno, "rdma_create_event_channel");
  auto channel = std::make_shared<EventChannel>(arguments.environment(), verbs);
  const int error = channel->Watch();
  if (error != 0) return arguments.Fail(-error, "uv_poll_init");
  return Napi::Number::New(info.Env(), arguments.environment()->Adopt(channel));
}

Napi::Value DestroyEventChannel(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<EventChannel> channel = arguments.HandleAt<EventChannel>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  Environment* environment = arguments.environment();
  channel->Close();
  environment->handles().Remove(channel->handle());
  return environment->RunInPool("rdma_destroy_event_channel", [channel] { return 0; });
}

Napi::Value ReferenceEventChannel(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const bool alive = arguments.Boolean(1, "alive");
  const std::shared_ptr<EventChannel> channel = arguments.HandleAt<EventChannel>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  channel->SetAlive(alive);
  return info.Env().Undefined();
}

bool HasParameters(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_ESTABLISHED:
      return true;
    default:
      return false;
  }
}

bool IsOfGroup(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

}  // namespace

EventChannel::EventChannel(Environment* environment, rdma_event_channel* channel)
    : Object(kKind), environment_(environment), channel_(channel) {}

EventChannel::~EventChannel() { rdma_destroy_event_channel(channel_); }

void EventChannel::Close() {
  Object::Close();
  watcher_.Stop();
}

int EventChannel::Watch() {
  const int error = SetNonBlocking(channel_->fd);
  return error != 0 ? error : watcher_.Start(environment_, channel_->fd, [this] { OnReadable(); });
}

EventChannel::Event EventChannel::Copy(const rdma_cm_event& raw) {
  // Handles: once the event is acknowledged, another thread may free the ids.
  const bool requested = raw.event == RDMA_CM_EVENT_CONNECT_REQUEST;
  Event event{raw.event,
              requested ? raw.id : nullptr,
              requested ? 0 : CmId::HandleOf(raw.id),
              CmId::HandleOf(raw.listen_id),
              raw.status,
              {},
              {},
              0,
              {}};
  const auto keep = [&event](const void* data, size_t length) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    if (bytes != nullptr) event.private_data.assign(bytes, bytes + length);
  };
  if (IsOfGroup(raw.event)) {
    event.group = CmId::GroupOf(raw);
    if (raw.event == RDMA_CM_EVENT_MULTICAST_JOIN) event.datagram = raw.param.ud;
  } else if (raw.id->qp_type != IBV_QPT_UD) {
    if (!HasParameters(raw.event)) return event;
    event.parameters = raw.param.conn;
    keep(raw.param.conn.private_data, raw.param.conn.private_data_len);
  } else if (HasParameters(raw.event) || raw.event == RDMA_CM_EVENT_UNREACHABLE) {
    // A rejected datagram request comes as UNREACHABLE.
    if (raw.event == RDMA_CM_EVENT_ESTABLISHED) event.datagram = raw.param.ud;
    keep(raw.param.ud.private_data, raw.param.ud.private_data_len);
  }
  return event;
}

void EventChannel::OnReadable() {
  const std::shared_ptr<EventChannel> self = shared_from_this();
  for (int i = 0; i < kEventsPerTurn && !closing(); i++) {
    rdma_cm_event* raw;
    if (rdma_get_cm_event(channel_, &raw) != 0) return;
    const Event event = Copy(*raw);
    // Before any JavaScript: destroying and migrating an id wait for this.
    rdma_ack_cm_event(raw);
    const uint32_t id = Apply(event);
    if (id != 0) Emit(event, id);
    if (environment_->ending()) return;
  }
}

uint32_t EventChannel::Apply(const Event& event) {
  HandleTable& handles = environment_->handles();
  if (event.request != nullptr) {
    const CmId* listener = handles.Find<CmId>(event.listener);
    auto request =
        std::make_shared<CmId>(environment_, shared_from_this(), event.request, CmId::Role::kRequested);
    const bool wanted = listener != nullptr && !listener->closing();
    const uint32_t handle = handles.Add(request);
    event.request->context = reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
    if (wanted && handle != 0) return handle;
    request->Destroy([] {});
    return 0;
  }
  CmId* id = handles.Find<CmId>(event.id);
  if (id == nullptr || id->closing()) return 0;
  id->Apply(event.type, event.parameters, event.group);
  return id->handle();
}

void EventChannel::Emit(const Event& event, uint32_t id) {
  Napi::Env env(environment_->env());
  Napi::HandleScope scope(env);
  Napi::Object result = Napi::Object::New(env);
  Napi::Uint8Array data = Napi::Uint8Array::New(env, event.private_data.size());
  if (!event.private_data.empty())
    std::memcpy(data.Data(), event.private_data.data(), event.private_data.size());
  SetNumbers(result,
             {
                 {"type", event.type},
                 {"id", id},
                 {"listener", event.request == nullptr ? 0 : event.listener},
                 {"status", event.status},
                 {"responderResources", event.parameters.responder_resources},
                 {"initiatorDepth", event.parameters.initiator_depth},
                 {"flowControl", event.parameters.flow_control},
                 {"retryCount", event.parameters.retry_count},
                 {"rnrRetryCount", event.parameters.rnr_retry_count},
                 {"qpNumber", event.datagram.has_value() ? event.datagram->qp_num : event.parameters.qp_num},
                 {"group", event.group},
             });
  if (event.datagram.has_value()) {
    result.Set("qkey", event.datagram->qkey);
    result.Set("addressVector", DescribeAddressVector(env, event.datagram->ah_attr));
  }
  result.Set("privateData", data);
  const napi_value arguments[] = {result};
  environment_->Call(Environment::Hook::kCmEvent, 1, arguments);
}

void EventChannel::Export(Napi::Object exports) {
  ExportFunction(exports, "createEventChannel", CreateEventChannel);
  ExportFunction(exports, "destroyEventChannel", DestroyEventChannel);
  ExportFunction(exports, "referenceEventChannel", ReferenceEventChannel);
}

}  // namespace node_rdma
