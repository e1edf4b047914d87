#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <atomic>
#include <memory>

#include "loop/watcher.h"
#include "support/object.h"
#include "verbs/context_registry.h"

namespace node_rdma {

class Environment;

class CompletionChannel : public Object {
 public:
  static constexpr Kind kKind = Kind::kCompletionChannel;

  CompletionChannel(Environment* environment, std::shared_ptr<Context> context, ibv_comp_channel* channel);
  ~CompletionChannel() override;
  void Close() override;

  // 0 or a negative errno.
  int Watch();

  ibv_comp_channel* channel() const { return channel_; }
  const std::shared_ptr<Context>& context() const { return context_; }
  std::atomic<int>& users() { return users_; }
  // How many queues on the channel keep the process alive.
  void AddAlive(int count);

  static void Export(Napi::Object exports);

 private:
  void OnReadable();

  Environment* const environment_;
  const std::shared_ptr<Context> context_;
  ibv_comp_channel* const channel_;
  Watcher watcher_;
  std::atomic<int> users_ = 0;
  int alive_ = 0;
};

}  // namespace node_rdma
