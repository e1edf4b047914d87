#pragma once

#include <napi.h>
#include <uv.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loop/mailbox.h"
#include "loop/watcher.h"
#include "ring/completion_delivery.h"
#include "ring/request_ring.h"
#include "support/handle_table.h"

namespace node_rdma {

class Context;

// What one Node environment (the main thread or a worker) owns. Handles, rings and watchers never cross to
// another.
class Environment {
 public:
  explicit Environment(Napi::Env env);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // Takes the hooks over and returns the rings.
  Napi::Value Initialize(Napi::Object hooks);
  bool initialized() const { return initialized_; }
  // The environment is being torn down: nothing reaches JavaScript any more.
  bool ending() const { return ending_; }

  napi_env env() const { return env_; }
  uv_loop_t* loop() const { return loop_; }
  HandleTable& handles() { return handles_; }
  Control& control() { return control_; }
  RequestRing& requests() { return requests_; }
  CompletionDelivery& completions() { return completions_; }
  // For those who may outlive this environment.
  std::shared_ptr<Mailbox> mailbox() const { return mailbox_; }

  // Registers a new object; its handle, or 0 with an exception pending when there are too many.
  uint32_t Adopt(std::shared_ptr<Object> object);

  // The error of a failed C call, made by the hook.
  Napi::Value MakeError(int error, const char* syscall);
  void Throw(int error, const char* syscall);

  // Calls a hook from the loop; an exception becomes an uncaught one. What JavaScript submitted meanwhile is
  // posted when the call returns. False when the hook threw.
  enum class Hook { kCreateError, kCompletions, kCmEvent, kAsyncEvent };
  bool Call(Hook hook, size_t count, const napi_value* arguments);
  // The same for a call made while JavaScript is on the stack: the exception stays pending for the caller.
  bool CallNested(Hook hook, size_t count, const napi_value* arguments);

  // Runs `work` in the pool; it returns 0 or an errno. Then `done`, if given, runs on this thread and makes
  // the value that the promise resolves with; an error rejects it, after `failed` has run. Neither may hold
  // anything of JavaScript's: when the environment has ended they are destroyed on a thread of the pool.
  using Done = std::function<Napi::Value()>;
  Napi::Promise RunInPool(const char* syscall, std::function<int()> work, Done done = nullptr,
                          std::function<void()> failed = nullptr);
  // Without a promise: `done` gets the errno. Not called when the environment ended meanwhile.
  void RunInPool(std::function<int()> work, std::function<void(int)> done);

  // Keeps a buffer of JavaScript's alive while a device may reach it: until it is released by its number, or
  // until everything of the environment is gone.
  uint32_t HoldBuffer(Napi::Object view);
  void ReleaseBuffer(uint32_t number) { buffers_.erase(number); }

  // Asynchronous events of a device are read on this loop while the environment has it open.
  void WatchDevice(const std::shared_ptr<Context>& context, uint32_t device);
  void UnwatchDevice(const Context* context, uint32_t device);
  std::vector<uint32_t> DevicesOf(const Context* context) const;

  // Runs `letters` on this thread, each in a scope of its own.
  void Deliver(std::vector<Mailbox::Letter> letters);

  // Of libuv handles that hold a pointer to this environment.
  void OpenedHandle() { open_handles_++; }
  void ClosedHandle();

 private:
  void RunLetter(Mailbox::Letter letter);
  void End(napi_async_cleanup_hook_handle hook);
  void MaybeEnded();

  // The order of destruction is the reverse of this one.
  Napi::Env env_;
  uv_loop_t* loop_ = nullptr;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  Napi::ObjectReference hooks_;
  Napi::FunctionReference functions_[4];
  napi_async_context async_context_ = nullptr;
  napi_async_cleanup_hook_handle cleanup_hook_ = nullptr;
  Control control_{};
  HandleTable handles_;
  std::map<uint32_t, Napi::ObjectReference> buffers_;
  uint32_t last_buffer_ = 0;
  RequestRing requests_{this};
  CompletionDelivery completions_{this};
  struct WatchedContext {
    std::unique_ptr<Watcher> watcher;
    std::vector<uint32_t> devices;
  };
  std::map<const Context*, WatchedContext> watched_;
  int open_handles_ = 0;
  bool initialized_ = false;
  bool ending_ = false;
  bool objects_gone_ = false;
};

}  // namespace node_rdma
