#include "verbs/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "environment.h"
#include "support/arguments.h"
#include "support/result.h"
#include "verbs/device.h"
#include "verbs/extended_poll.h"
#include "verbs/queue_pair.h"
#include "verbs/shared_receive_queue.h"

namespace node_rdma {

namespace {

constexpr uint32_t kMaxSpin = 1000;

Napi::Value CreateCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t entries = arguments.U32(1, "entries", 1, INT32_MAX);
  const uint32_t channel_handle = arguments.U32(2, "channel");
  const uint32_t fields = arguments.U32(3, "fields", 0, kTimestamp | kWallclock);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  std::shared_ptr<CompletionChannel> channel;
  if (channel_handle != 0) channel = arguments.Handle<CompletionChannel>(channel_handle);
  if (!arguments.ok()) return info.Env().Undefined();
  if (channel != nullptr && channel->context() != device->context())
    return arguments.Fail(EINVAL, "ibv_create_cq");
  Environment* environment = arguments.environment();
  const auto cq = CompletionQueue::Make(environment, device->context(), static_cast<int>(entries),
                                        std::move(channel), fields);
  if (cq == nullptr) return arguments.Fail(errno, fields == 0 ? "ibv_create_cq" : "ibv_create_cq_ex");
  const uint32_t handle = environment->Adopt(cq);
  if (handle == 0) return info.Env().Undefined();
  ContextRegistry::Shared().Route(cq->cq(), environment, handle);
  cq->SetAlive(true);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("handle", handle);
  result.Set("entries", cq->cq()->cqe);
  return result;
}

Napi::Value SetCompletionQueueWaiting(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const auto waiting = static_cast<Waiting>(arguments.U32(1, "waiting", 0, 3));
  const uint32_t spin = arguments.U32(2, "spin", 0, kMaxSpin);
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if ((waiting == Waiting::kEvent || waiting == Waiting::kAdaptive) && cq->cq()->channel == nullptr) {
    return arguments.Fail(EINVAL, "ibv_req_notify_cq");
  }
  cq->SetWaiting(waiting, spin);
  return info.Env().Undefined();
}

Napi::Value ResizeCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t entries = arguments.U32(1, "entries", 1, INT32_MAX);
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error = cq->Resize(static_cast<int>(entries));
  if (error != 0) return arguments.Fail(error, "ibv_resize_cq");
  return Napi::Number::New(info.Env(), cq->cq()->cqe);
}

Napi::Value ModerateCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t count = arguments.U32(1, "count", 0, UINT16_MAX);
  const uint32_t period = arguments.U32(2, "period", 0, UINT16_MAX);
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error = cq->Moderate(static_cast<uint16_t>(count), static_cast<uint16_t>(period));
  if (error != 0) return arguments.Fail(error, "ibv_modify_cq");
  return info.Env().Undefined();
}

Napi::Value PollCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t limit = arguments.U32(1, "limit", 1);
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  CompletionDelivery& completions = arguments.environment()->completions();
  // Its handlers are reading the ring that this would fill.
  if (completions.busy()) return arguments.Fail(EBUSY, "ibv_poll_cq");
  uint32_t total = 0;
  while (limit > 0 && !cq->closing()) {
    // What is left over from a handler that threw comes before anything newer.
    int taken = completions.DeliverMadeFor(cq->handle(), limit);
    if (taken == 0) taken = completions.PollAndDeliver(cq.get(), limit, true);
    if (info.Env().IsExceptionPending()) return info.Env().Undefined();
    if (taken <= 0) break;
    total += static_cast<uint32_t>(taken);
    limit -= static_cast<uint32_t>(taken);
  }
  return Napi::Number::New(info.Env(), total);
}

Napi::Value DestroyCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (cq->users() > 0) return arguments.Fail(EBUSY, "ibv_destroy_cq");
  Environment* environment = arguments.environment();
  cq->Close();
  environment->handles().Remove(cq->handle());
  // The pool's copy is the last one; destroying waits for the kernel.
  return environment->RunInPool("ibv_destroy_cq", [cq] { return 0; });
}

Napi::Value ReferenceCompletionQueue(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const bool alive = arguments.Boolean(1, "alive");
  const std::shared_ptr<CompletionQueue> cq = arguments.HandleAt<CompletionQueue>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  cq->SetAlive(alive);
  return info.Env().Undefined();
}

}  // namespace

std::shared_ptr<CompletionQueue> CompletionQueue::Make(Environment* environment,
                                                       std::shared_ptr<Context> context, int entries,
                                                       std::shared_ptr<CompletionChannel> channel,
                                                       uint32_t fields) {
  ibv_context* verbs = context->verbs();
  ibv_comp_channel* verbs_channel = channel == nullptr ? nullptr : channel->channel();
  auto cq = std::make_shared<CompletionQueue>(environment, std::move(context), std::move(channel));
  if (fields == 0) {
    cq->cq_ = ibv_create_cq(verbs, entries, cq.get(), verbs_channel, 0);
  } else {
    cq->fields_ = fields;
    cq->extended_ = CreateExtended(verbs, static_cast<uint32_t>(entries), cq.get(), verbs_channel, fields);
    if (cq->extended_ != nullptr) cq->cq_ = ibv_cq_ex_to_cq(cq->extended_);
  }
  return cq->cq_ == nullptr ? nullptr : cq;
}

CompletionQueue::CompletionQueue(Environment* environment, std::shared_ptr<Context> context,
                                 std::shared_ptr<CompletionChannel> channel)
    : Object(kKind),
      environment_(environment),
      context_(std::move(context)),
      channel_(channel == nullptr ? nullptr
                                  : std::make_unique<Membership<CompletionChannel>>(std::move(channel))) {}

CompletionQueue::~CompletionQueue() {
  if (cq_ == nullptr) return;
  ContextRegistry::Shared().Unroute(cq_);
  const int error = errno;
  ibv_destroy_cq(cq_);
  errno = error;
}

void CompletionQueue::Close() {
  if (closing()) return;
  SetAlive(false);
  environment_->completions().Forget(this);
  Object::Close();
}

int CompletionQueue::Take(WorkCompletion* out, uint32_t limit, uint32_t* delivered) {
  ibv_wc completions[CompletionDelivery::kBatch];
  uint64_t timestamps[CompletionDelivery::kBatch][2];
  const int count =
      Poll(static_cast<int>(std::min(limit, CompletionDelivery::kBatch)), completions, timestamps);
  uint32_t written = 0;
  for (int i = 0; i < count; i++) {
    const uint32_t handle = QueuePair::HandleOf(completions[i].wr_id);
    bool seen = false;
    if (QueuePair* queue_pair = environment_->handles().Find<QueuePair>(handle); queue_pair != nullptr) {
      seen = queue_pair->Complete(completions[i], &out[written]);
    } else if (auto* srq = environment_->handles().Find<SharedReceiveQueue>(handle); srq != nullptr) {
      seen = srq->Complete(completions[i], &out[written]);
    }
    // Else left over from a queue that is gone: its requests have been settled.
    if (!seen) continue;
    if (extended_ != nullptr) {
      out[written].timestamp = timestamps[i][0];
      out[written].wallclock = timestamps[i][1];
    }
    written++;
  }
  *delivered = written;
  return std::max(count, 0);
}

int CompletionQueue::Poll(int limit, ibv_wc* completions, uint64_t (*timestamps)[2]) {
  return extended_ == nullptr ? ibv_poll_cq(cq_, limit, completions)
                              : PollExtended(extended_, fields_, limit, completions, timestamps);
}

int CompletionQueue::Resize(int entries) { return ErrnoOf(ibv_resize_cq(cq_, entries)); }

int CompletionQueue::Moderate(uint16_t count, uint16_t period) {
  ibv_modify_cq_attr attributes{};
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
  attributes.moderate = {count, period};
  return ErrnoOf(ibv_modify_cq(cq_, &attributes));
}

void CompletionQueue::SetWaiting(Waiting waiting, uint32_t spin_microseconds) {
  waiting_ = waiting;
  spin_ = waiting == Waiting::kAdaptive ? spin_microseconds * uint64_t{1000} : 0;
  environment_->completions().SetPolled(shared_from_this(), waiting == Waiting::kPoll);
  if (Sleeps()) Arm();
}

void CompletionQueue::Arm() { ibv_req_notify_cq(cq_, 0); }

uint64_t CompletionQueue::SpinNanoseconds() const {
  // A queue whose completions come more seldom than that would only burn the processor.
  return gap_ > spin_ ? 0 : std::min(spin_, 2 * gap_ + spin_ / 4);
}

void CompletionQueue::Observe(uint64_t now) {
  const uint64_t gap = std::min(now - last_, 4 * spin_);
  gap_ = gap_ - gap_ / 4 + gap / 4;
  last_ = now;
}

void CompletionQueue::SetAlive(bool alive) {
  if (alive_ == alive) return;
  alive_ = alive;
  if (channel_ != nullptr) (*channel_)->AddAlive(alive ? 1 : -1);
}

void CompletionQueue::Export(Napi::Object exports) {
  ExportFunction(exports, "createCompletionQueue", CreateCompletionQueue);
  ExportFunction(exports, "setCompletionQueueWaiting", SetCompletionQueueWaiting);
  ExportFunction(exports, "resizeCompletionQueue", ResizeCompletionQueue);
  ExportFunction(exports, "moderateCompletionQueue", ModerateCompletionQueue);
  ExportFunction(exports, "pollCompletionQueue", PollCompletionQueue);
  ExportFunction(exports, "destroyCompletionQueue", DestroyCompletionQueue);
  ExportFunction(exports, "referenceCompletionQueue", ReferenceCompletionQueue);
}

}  // namespace node_rdma
