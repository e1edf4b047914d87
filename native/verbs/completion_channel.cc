#include "verbs/completion_channel.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "environment.h"
#include "support/arguments.h"
#include "verbs/completion_queue.h"
#include "verbs/device.h"

namespace node_rdma {

namespace {

Napi::Value CreateCompletionChannel(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_comp_channel* verbs = ibv_create_comp_channel(device->context()->verbs());
  if (verbs == nullptr) return arguments.Fail(errno, "ibv_create_comp_channel");
  auto channel = std::make_shared<CompletionChannel>(arguments.environment(), device->context(), verbs);
  const int error = channel->Watch();
  if (error != 0) return arguments.Fail(-error, "uv_poll_init");
  return Napi::Number::New(info.Env(), arguments.environment()->Adopt(channel));
}

Napi::Value DestroyCompletionChannel(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<CompletionChannel> channel = arguments.HandleAt<CompletionChannel>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (channel->users() > 0) return arguments.Fail(EBUSY, "ibv_destroy_comp_channel");
  channel->Close();
  arguments.environment()->handles().Remove(channel->handle());
  return info.Env().Undefined();
}

}  // namespace

CompletionChannel::CompletionChannel(Environment* environment, std::shared_ptr<Context> context,
                                     ibv_comp_channel* channel)
    : Object(kKind), environment_(environment), context_(std::move(context)), channel_(channel) {}

CompletionChannel::~CompletionChannel() { ibv_destroy_comp_channel(channel_); }

int CompletionChannel::Watch() {
  int error = SetNonBlocking(channel_->fd);
  if (error == 0) error = watcher_.Start(environment_, channel_->fd, [this] { OnReadable(); });
  watcher_.SetAlive(false);
  return error;
}

void CompletionChannel::Close() {
  Object::Close();
  watcher_.Stop();
}

void CompletionChannel::AddAlive(int count) {
  alive_ += count;
  watcher_.SetAlive(alive_ > 0);
}

void CompletionChannel::OnReadable() {
  std::vector<std::shared_ptr<CompletionQueue>> ready;
  ibv_cq* verbs;
  void* context;
  while (ibv_get_cq_event(channel_, &verbs, &context) == 0) {
    // Acknowledged at once: destroying the queue waits for it. A queue that is being destroyed is not served.
    auto cq = static_cast<CompletionQueue*>(context)->weak_from_this().lock();
    ibv_ack_cq_events(verbs, 1);
    if (cq != nullptr && std::find(ready.begin(), ready.end(), cq) == ready.end())
      ready.push_back(std::move(cq));
  }
  if (!ready.empty()) environment_->completions().Serve(std::move(ready));
}

void CompletionChannel::Export(Napi::Object exports) {
  ExportFunction(exports, "createCompletionChannel", CreateCompletionChannel);
  ExportFunction(exports, "destroyCompletionChannel", DestroyCompletionChannel);
}

}  // namespace node_rdma
