#include "job/pmix.h"

#include <memory>
#include <string>
#include <utility>

#include "environment.h"
#include "job/pmix_library.h"
#include "support/arguments.h"

namespace node_rdma {

namespace {

// The longest time-out that PMIx takes, in seconds.
constexpr uint32_t kMaxTimeout = INT32_MAX;

Napi::Object Outcome(Napi::Env env, int status) {
  Napi::Object outcome = Napi::Object::New(env);
  outcome.Set("status", status);
  outcome.Set("name", PmixLibrary::Shared().Describe(status));
  return outcome;
}

// `call` blocks, in the pool; what PMIx says to it is what the promise resolves with.
template <typename Call>
Napi::Value Run(Environment* environment, const char* name, Call call) {
  auto status = std::make_shared<int>();
  return environment->RunInPool(
      name,
      [status, call = std::move(call)] {
        *status = call();
        return 0;
      },
      [environment, status]() -> Napi::Value { return Outcome(environment->env(), *status); });
}

std::string Key(Arguments* arguments, size_t index) {
  std::string key = arguments->String(index, "key");
  if (arguments->ok() && (key.empty() || key.size() > kPmixMaxKeyLength))
    arguments->FailType("key", "a string of 1 to 511 bytes");
  return key;
}

Napi::Value Load(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string path = arguments.String(0, "path");
  if (!arguments.ok()) return info.Env().Undefined();
  return Napi::String::New(info.Env(), PmixLibrary::Shared().Load(path));
}

Napi::Value Initialize(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  Environment* environment = arguments.environment();
  struct Result {
    int status = 0;
    PmixProcess self{};
  };
  auto result = std::make_shared<Result>();
  return environment->RunInPool(
      "PMIx_Init",
      [result] {
        result->status = PmixLibrary::Shared().Initialize(&result->self);
        return 0;
      },
      [environment, result]() -> Napi::Value {
        Napi::Object outcome = Outcome(environment->env(), result->status);
        outcome.Set("namespace", result->self.name_space);
        outcome.Set("rank", result->self.rank);
        return outcome;
      });
}

Napi::Value Put(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  std::string key = Key(&arguments, 0);
  auto bytes = arguments.OptionalBytes(1, "value");
  if (!arguments.ok()) return info.Env().Undefined();
  return Run(arguments.environment(), "PMIx_Put",
             [key = std::move(key), bytes = std::move(bytes).value_or(std::vector<uint8_t>())] {
               return PmixLibrary::Shared().Put(key, bytes);
             });
}

Napi::Value Get(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t rank = arguments.U32(0, "rank");
  const std::string key = Key(&arguments, 1);
  const uint32_t timeout = arguments.U32(2, "timeout", 0, kMaxTimeout);
  const bool refresh = arguments.Boolean(3, "refresh");
  if (!arguments.ok()) return info.Env().Undefined();
  Environment* environment = arguments.environment();
  struct Result {
    int status = 0;
    PmixDatum datum;
  };
  auto result = std::make_shared<Result>();
  return environment->RunInPool(
      "PMIx_Get",
      [result, rank, key, timeout, refresh] {
        result->status =
            PmixLibrary::Shared().Get(rank, key, static_cast<int>(timeout), refresh, &result->datum);
        return 0;
      },
      [environment, result]() -> Napi::Value {
        Napi::Env env(environment->env());
        Napi::Object outcome = Outcome(env, result->status);
        const PmixDatum& datum = result->datum;
        outcome.Set("type", datum.type);
        outcome.Set("number", datum.number);
        outcome.Set("bytes", Napi::Buffer<uint8_t>::Copy(env, datum.bytes.data(), datum.bytes.size()));
        return outcome;
      });
}

Napi::Value Fence(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t timeout = arguments.U32(0, "timeout", 0, kMaxTimeout);
  if (!arguments.ok()) return info.Env().Undefined();
  return Run(arguments.environment(), "PMIx_Fence",
             [timeout] { return PmixLibrary::Shared().Fence(static_cast<int>(timeout)); });
}

// Blocks: for a process that is about to end, and has no other thought.
Napi::Value Abort(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t status = arguments.U32(0, "status", 0, INT32_MAX);
  const std::string message = arguments.String(1, "message");
  if (!arguments.ok()) return info.Env().Undefined();
  return Outcome(info.Env(), PmixLibrary::Shared().Abort(static_cast<int>(status), message));
}

Napi::Value Finalize(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  return Run(arguments.environment(), "PMIx_Finalize", [] { return PmixLibrary::Shared().Finalize(); });
}

// Blocks, as Abort does.
Napi::Value FinalizeSync(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (!arguments.ok()) return info.Env().Undefined();
  return Outcome(info.Env(), PmixLibrary::Shared().Finalize());
}

}  // namespace

void ExportPmix(Napi::Object exports) {
  ExportFunction(exports, "pmixLoad", Load);
  ExportFunction(exports, "pmixInitialize", Initialize);
  ExportFunction(exports, "pmixPut", Put);
  ExportFunction(exports, "pmixGet", Get);
  ExportFunction(exports, "pmixFence", Fence);
  ExportFunction(exports, "pmixAbort", Abort);
  ExportFunction(exports, "pmixFinalize", Finalize);
  ExportFunction(exports, "pmixFinalizeSync", FinalizeSync);
}

}  // namespace node_rdma
