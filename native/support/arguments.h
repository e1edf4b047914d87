#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "environment.h"

namespace node_rdma {

// Reads and checks the arguments of one native call. The first that is wrong throws a TypeError, a RangeError
// or an ERR_RDMA_INVALID_HANDLE in JavaScript; from then on ok() is false and every getter returns an empty
// value.
class Arguments {
 public:
  explicit Arguments(const Napi::CallbackInfo& info);

  bool ok() const { return ok_; }
  Environment* environment() const { return environment_; }
  Napi::Env env() const { return info_.Env(); }

  uint32_t U32(size_t index, const char* name, uint32_t min = 0, uint32_t max = UINT32_MAX);
  uint64_t Size(size_t index, const char* name, uint64_t min, uint64_t max);
  bool Boolean(size_t index, const char* name);
  std::string String(size_t index, const char* name);
  std::optional<std::string> OptionalString(size_t index, const char* name);
  // A copy: the view may change, or go, as soon as JavaScript runs again.
  std::optional<std::vector<uint8_t>> OptionalBytes(size_t index, const char* name);
  Napi::Object Object(size_t index, const char* name);
  bool IsNull(size_t index) const { return info_[index].IsNull(); }

  // Properties of an options object.
  uint32_t U32(Napi::Object object, const char* name, uint32_t min = 0, uint32_t max = UINT32_MAX);
  std::optional<uint32_t> OptionalU32(Napi::Object object, const char* name, uint32_t max = UINT32_MAX);
  std::string String(Napi::Object object, const char* name);
  std::optional<std::vector<uint8_t>> OptionalBytes(Napi::Object object, const char* name);
  Napi::Value Property(Napi::Object object, const char* name);

  // The open object behind a handle. Look handles up last: reading properties can run JavaScript that closes
  // them.
  template <typename T>
  std::shared_ptr<T> Handle(uint32_t handle) {
    if (!ok_) return nullptr;
    std::shared_ptr<T> object = environment_->handles().Share<T>(handle);
    if (object == nullptr || object->closing()) {
      FailHandle(node_rdma::Object::NameOf(T::kKind));
      return nullptr;
    }
    return object;
  }

  template <typename T>
  std::shared_ptr<T> HandleAt(size_t index) {
    return Handle<T>(U32(index, "handle"));
  }

  void FailType(const char* name, const char* expected);
  // Throws the error of a failed C call and returns undefined for the caller to return.
  Napi::Value Fail(int error, const char* syscall);
  // The same at the end of a function that returns nothing, whose call may have succeeded.
  Napi::Value Finish(int error, const char* syscall) {
    return error == 0 ? env().Undefined() : Fail(error, syscall);
  }

 private:
  uint32_t CheckU32(Napi::Value value, const char* name, uint32_t min, uint32_t max);
  std::optional<std::vector<uint8_t>> CheckBytes(Napi::Value value, const char* name);
  std::string CheckString(Napi::Value value, const char* name);
  void FailRange(const char* name, double min, double max);
  void FailHandle(const char* kind);

  const Napi::CallbackInfo& info_;
  Environment* environment_;
  bool ok_ = true;
};

// Gives JavaScript a function of the addon.
inline void ExportFunction(Napi::Object exports, const char* name,
                           Napi::Value (*function)(const Napi::CallbackInfo&)) {
  exports.Set(name, Napi::Function::New(exports.Env(), function, name));
}

}  // namespace node_rdma
