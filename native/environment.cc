#include "environment.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <utility>

#include "cm/cm_id.h"
#include "loop/worker_pool.h"
#include "verbs/context_registry.h"

namespace node_rdma {

namespace {

constexpr const char* kHookNames[] = {"createError", "onCompletions", "onCmEvent", "onAsyncEvent"};

Napi::Value BorrowedBuffer(Napi::Env env, void* data, size_t size) {
  return Napi::ArrayBuffer::New(env, data, size);
}

}  // namespace

Environment::Environment(Napi::Env env) : env_(env) {
  napi_get_uv_event_loop(env, &loop_);
  napi_add_async_cleanup_hook(
      env,
      [](napi_async_cleanup_hook_handle hook, void* data) { static_cast<Environment*>(data)->End(hook); },
      this, &cleanup_hook_);
}

Environment::~Environment() = default;

Napi::Value Environment::Initialize(Napi::Object hooks) {
  Napi::Env env(env_);
  std::array<Napi::Function, std::size(kHookNames)> functions;
  for (size_t i = 0; i < std::size(kHookNames); i++) {
    napi_value value;
    if (napi_get_named_property(env, hooks, kHookNames[i], &value) != napi_ok) return env.Undefined();
    if (!Napi::Value(env, value).IsFunction()) {
      const std::string message = std::string("The hook ") + kHookNames[i] + " must be a function";
      napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message.c_str());
      return env.Undefined();
    }
    functions[i] = Napi::Value(env, value).As<Napi::Function>();
  }
  // Here, and not first: a getter of the hooks may have initialized the addon.
  if (initialized_) {
    napi_throw_error(env, "ERR_RDMA_INITIALIZED", "The addon is already initialized in this environment");
    return env.Undefined();
  }
  for (size_t i = 0; i < functions.size(); i++) functions_[i] = Napi::Persistent(functions[i]);
  hooks_ = Napi::Persistent(hooks);
  napi_async_init(env, hooks, Napi::String::New(env, "node-rdma"), &async_context_);
  mailbox_->Open(loop_, [this](std::vector<Mailbox::Letter> letters) { Deliver(std::move(letters)); });
  completions_.Start();
  ibv_fork_init();
  initialized_ = true;

  Napi::Object rings = Napi::Object::New(env);
  rings.Set("requests", BorrowedBuffer(env, requests_.data(), RequestRing::size()));
  rings.Set("completions", BorrowedBuffer(env, completions_.data(), CompletionDelivery::size()));
  rings.Set("control", BorrowedBuffer(env, &control_, sizeof control_));
  return rings;
}

uint32_t Environment::Adopt(std::shared_ptr<Object> object) {
  const uint32_t handle = handles_.Add(object);
  if (handle == 0) {
    object->Close();
    Throw(ENOMEM, "node_rdma");
  }
  return handle;
}

Napi::Value Environment::MakeError(int error, const char* syscall) {
  Napi::Env env(env_);
  const napi_value arguments[] = {Napi::Number::New(env, -std::abs(error)), Napi::String::New(env, syscall)};
  napi_value result;
  const napi_status status =
      napi_call_function(env, hooks_.Value(), functions_[0].Value(), 2, arguments, &result);
  if (status == napi_ok) return Napi::Value(env, result);
  if (env.IsExceptionPending()) return env.GetAndClearPendingException().Value();
  return Napi::Error::New(env, syscall).Value();
}

void Environment::Throw(int error, const char* syscall) { napi_throw(env_, MakeError(error, syscall)); }

bool Environment::Call(Hook hook, size_t count, const napi_value* arguments) {
  if (ending_) return false;
  control_.in_callback++;
  napi_value result;
  const napi_status status =
      napi_make_callback(env_, async_context_, hooks_.Value(), functions_[static_cast<size_t>(hook)].Value(),
                         count, arguments, &result);
  control_.in_callback--;
  if (status == napi_pending_exception) {
    // Left pending it would come out of the next, unrelated call.
    napi_value exception;
    napi_get_and_clear_last_exception(env_, &exception);
    napi_fatal_exception(env_, exception);
  }
  requests_.Flush();
  return status == napi_ok;
}

bool Environment::CallNested(Hook hook, size_t count, const napi_value* arguments) {
  control_.in_callback++;
  napi_value result;
  const napi_status status = napi_call_function(
      env_, hooks_.Value(), functions_[static_cast<size_t>(hook)].Value(), count, arguments, &result);
  control_.in_callback--;
  requests_.Flush();
  return status == napi_ok;
}

void Environment::Deliver(std::vector<Mailbox::Letter> letters) {
  for (Mailbox::Letter& letter : letters) {
    if (ending_) return;
    RunLetter(std::move(letter));
  }
}

void Environment::RunLetter(Mailbox::Letter letter) {
  Napi::Env env(env_);
  Napi::HandleScope scope(env);
  control_.in_callback++;
  napi_callback_scope callback_scope;
  napi_open_callback_scope(env, nullptr, async_context_, &callback_scope);
  letter();
  // Before any reaction runs: what the letter still holds counts as a user of its parents, which could not be
  // closed.
  letter = nullptr;
  if (env.IsExceptionPending()) {
    const Napi::Error error = env.GetAndClearPendingException();
    napi_fatal_exception(env, error.Value());
  }
  // Promises that the letter settled run their reactions here.
  napi_close_callback_scope(env, callback_scope);
  control_.in_callback--;
  requests_.Flush();
}

void Environment::RunInPool(std::function<int()> work, std::function<void(int)> done) {
  mailbox_->Hold();
  WorkerPool::Shared().Run(
      [this, mailbox = mailbox_, work = std::move(work), done = std::move(done)]() mutable {
        const int error = work();
        // Let go here of what the work held: its destructors may block.
        work = nullptr;
        mailbox->Post([this, error, done = std::move(done)] {
          mailbox_->Release();
          if (done) done(error);
        });
      });
}

Napi::Promise Environment::RunInPool(const char* syscall, std::function<int()> work, Done done,
                                     std::function<void()> failed) {
  const auto deferred = Napi::Promise::Deferred::New(env_);
  RunInPool(std::move(work),
            [this, deferred, syscall, done = std::move(done), failed = std::move(failed)](int error) {
              if (error != 0) {
                if (failed) failed();
                deferred.Reject(MakeError(error, syscall));
                return;
              }
              Napi::Env env(env_);
              const Napi::Value value = done ? done() : env.Undefined();
              if (env.IsExceptionPending()) {
                deferred.Reject(env.GetAndClearPendingException().Value());
              } else {
                deferred.Resolve(value);
              }
            });
  return deferred.Promise();
}

uint32_t Environment::HoldBuffer(Napi::Object view) {
  buffers_.emplace(++last_buffer_, Napi::Persistent(view));
  return last_buffer_;
}

void Environment::WatchDevice(const std::shared_ptr<Context>& context, uint32_t device) {
  WatchedContext& watched = watched_[context.get()];
  watched.devices.push_back(device);
  if (watched.watcher != nullptr) return;
  watched.watcher = std::make_unique<Watcher>();
  watched.watcher->Start(this, context->verbs()->async_fd,
                         [context] { ContextRegistry::Shared().ReadEvents(context); });
  watched.watcher->SetAlive(false);
  ContextRegistry::Shared().Join(this, context);
}

void Environment::UnwatchDevice(const Context* context, uint32_t device) {
  const auto found = watched_.find(context);
  if (found != watched_.end()) std::erase(found->second.devices, device);
}

std::vector<uint32_t> Environment::DevicesOf(const Context* context) const {
  const auto found = watched_.find(context);
  return found == watched_.end() ? std::vector<uint32_t>() : found->second.devices;
}

void Environment::ClosedHandle() {
  open_handles_--;
  MaybeEnded();
}

void Environment::End(napi_async_cleanup_hook_handle hook) {
  ending_ = true;
  if (!initialized_) {
    napi_remove_async_cleanup_hook(hook);
    return;
  }
  ContextRegistry::Shared().Leave(this);
  completions_.Stop();
  for (auto& [context, watched] : watched_) watched.watcher->Stop();
  std::vector<std::shared_ptr<Object>> objects = handles_.TakeAll();
  for (const auto& object : objects) object->Close();
  // Destroying may wait for the kernel; what a hanging call still holds goes when that call returns, without
  // us. The buffers of registered memory stay alive until the device has let go of them.
  struct Farewell {
    uv_async_t async;
    Environment* environment;
  };
  auto* farewell = new Farewell{{}, this};
  farewell->async.data = farewell;
  uv_async_init(loop_, &farewell->async, [](uv_async_t* async) {
    auto* farewell = static_cast<Farewell*>(async->data);
    farewell->environment->buffers_.clear();
    uv_close(reinterpret_cast<uv_handle_t*>(async), [](uv_handle_t* handle) {
      auto* farewell = static_cast<Farewell*>(handle->data);
      Environment* environment = farewell->environment;
      delete farewell;
      environment->mailbox_->Close([environment] {
        environment->objects_gone_ = true;
        environment->MaybeEnded();
      });
    });
  });
  // On iWARP destroying an id that is connecting waits until its peer answers, or for 10 s. Nothing of ours
  // has to wait for that: each gets a thread, the requests first, since the peer that is waited for may be
  // one of them.
  const auto ids = std::stable_partition(objects.begin(), objects.end(), [](const auto& object) {
    return object->kind() != Kind::kCmId && object->kind() != Kind::kEventChannel;
  });
  std::stable_partition(ids, objects.end(), [](const auto& object) {
    return object->kind() == Kind::kCmId && static_cast<CmId*>(object.get())->requested();
  });
  std::vector<std::shared_ptr<Object>> detached(std::make_move_iterator(ids),
                                                std::make_move_iterator(objects.end()));
  objects.erase(ids, objects.end());
  WorkerPool::Shared().Run(
      [objects = std::move(objects), detached = std::move(detached), farewell]() mutable {
        for (auto& object : objects) object.reset();
        for (auto& object : detached) WorkerPool::Shared().Run([object = std::move(object)] {});
        uv_async_send(&farewell->async);
      });
}

void Environment::MaybeEnded() {
  if (!ending_ || !objects_gone_ || open_handles_ > 0 || cleanup_hook_ == nullptr) return;
  if (async_context_ != nullptr) napi_async_destroy(env_, std::exchange(async_context_, nullptr));
  napi_remove_async_cleanup_hook(std::exchange(cleanup_hook_, nullptr));
}

}  // namespace node_rdma
