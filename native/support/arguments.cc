#include "support/arguments.h"

#include <cerrno>
#include <cmath>

namespace node_rdma {

namespace {

Napi::Error WithCode(Napi::Error error, const char* code) {
  error.Value().Set("code", Napi::String::New(error.Env(), code));
  return error;
}

std::string Number(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.'));
}

}  // namespace

Arguments::Arguments(const Napi::CallbackInfo& info)
    : info_(info), environment_(info.Env().GetInstanceData<Environment>()) {
  if (environment_ == nullptr || !environment_->initialized()) {
    ok_ = false;
    WithCode(Napi::Error::New(info.Env(), "The addon is not initialized in this environment"),
             "ERR_RDMA_UNAVAILABLE")
        .ThrowAsJavaScriptException();
  }
}

Napi::Value Arguments::Fail(int error, const char* syscall) {
  if (ok_) environment_->Throw(error, syscall);
  ok_ = false;
  return env().Undefined();
}

void Arguments::FailType(const char* name, const char* expected) {
  if (!ok_) return;
  ok_ = false;
  if (env().IsExceptionPending()) return;
  const std::string message = std::string("The \"") + name + "\" argument must be " + expected;
  WithCode(Napi::TypeError::New(env(), message), "ERR_INVALID_ARG_TYPE").ThrowAsJavaScriptException();
}

void Arguments::FailRange(const char* name, double min, double max) {
  if (!ok_) return;
  ok_ = false;
  const std::string message = std::string("The value of \"") + name +
                              "\" is out of range. It must be an integer >= " + Number(min) +
                              " and <= " + Number(max);
  WithCode(Napi::RangeError::New(env(), message), "ERR_OUT_OF_RANGE").ThrowAsJavaScriptException();
}

void Arguments::FailHandle(const char* kind) {
  if (!ok_) return;
  ok_ = false;
  const std::string message = std::string("The handle is not one of an open ") + kind;
  WithCode(Napi::Error::New(env(), message), "ERR_RDMA_INVALID_HANDLE").ThrowAsJavaScriptException();
}

uint32_t Arguments::CheckU32(Napi::Value value, const char* name, uint32_t min, uint32_t max) {
  if (!ok_) return min;
  if (!value.IsNumber()) {
    FailType(name, "an integer");
    return min;
  }
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= min && number <= max) || std::floor(number) != number) {
    FailRange(name, min, max);
    return min;
  }
  return static_cast<uint32_t>(number);
}

std::string Arguments::CheckString(Napi::Value value, const char* name) {
  if (!ok_) return {};
  if (!value.IsString()) {
    FailType(name, "a string");
    return {};
  }
  std::string text = value.As<Napi::String>().Utf8Value();
  // C functions would see only the part before it.
  if (text.find('\0') != std::string::npos) {
    FailType(name, "a string without null bytes");
    return {};
  }
  return text;
}

std::optional<std::vector<uint8_t>> Arguments::CheckBytes(Napi::Value value, const char* name) {
  if (!ok_ || value.IsNull() || value.IsUndefined()) return std::nullopt;
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    FailType(name, "a Uint8Array or null");
    return std::nullopt;
  }
  const Napi::Uint8Array bytes = value.As<Napi::Uint8Array>();
  const uint8_t* data = bytes.Data();
  if (data == nullptr) return std::vector<uint8_t>();
  return std::vector<uint8_t>(data, data + bytes.ByteLength());
}

uint32_t Arguments::U32(size_t index, const char* name, uint32_t min, uint32_t max) {
  return CheckU32(info_[index], name, min, max);
}

uint64_t Arguments::Size(size_t index, const char* name, uint64_t min, uint64_t max) {
  if (!ok_) return min;
  if (!info_[index].IsNumber()) {
    FailType(name, "an integer");
    return min;
  }
  const double number = info_[index].As<Napi::Number>().DoubleValue();
  const double low = static_cast<double>(min);
  const double high = static_cast<double>(max);
  if (!(number >= low && number <= high) || std::floor(number) != number) {
    FailRange(name, low, high);
    return min;
  }
  return static_cast<uint64_t>(number);
}

bool Arguments::Boolean(size_t index, const char* name) {
  if (!ok_) return false;
  if (!info_[index].IsBoolean()) {
    FailType(name, "a boolean");
    return false;
  }
  return info_[index].As<Napi::Boolean>().Value();
}

std::string Arguments::String(size_t index, const char* name) { return CheckString(info_[index], name); }

std::optional<std::string> Arguments::OptionalString(size_t index, const char* name) {
  if (!ok_ || info_[index].IsNull() || info_[index].IsUndefined()) return std::nullopt;
  return CheckString(info_[index], name);
}

std::optional<std::vector<uint8_t>> Arguments::OptionalBytes(size_t index, const char* name) {
  return CheckBytes(info_[index], name);
}

Napi::Object Arguments::Object(size_t index, const char* name) {
  if (ok_ && info_[index].IsObject()) return info_[index].As<Napi::Object>();
  FailType(name, "an object");
  return Napi::Object::New(env());
}

Napi::Value Arguments::Property(Napi::Object object, const char* name) {
  if (!ok_) return env().Undefined();
  napi_value value;
  if (napi_get_named_property(env(), object, name, &value) != napi_ok) {
    // A getter threw: its exception is the one that the caller sees.
    ok_ = false;
    return env().Undefined();
  }
  return Napi::Value(env(), value);
}

uint32_t Arguments::U32(Napi::Object object, const char* name, uint32_t min, uint32_t max) {
  return CheckU32(Property(object, name), name, min, max);
}

std::optional<uint32_t> Arguments::OptionalU32(Napi::Object object, const char* name, uint32_t max) {
  const Napi::Value value = Property(object, name);
  if (!ok_ || value.IsUndefined()) return std::nullopt;
  return CheckU32(value, name, 0, max);
}

std::string Arguments::String(Napi::Object object, const char* name) {
  return CheckString(Property(object, name), name);
}

std::optional<std::vector<uint8_t>> Arguments::OptionalBytes(Napi::Object object, const char* name) {
  return CheckBytes(Property(object, name), name);
}

}  // namespace node_rdma
