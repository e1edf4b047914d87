#include "job/pmix_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace node_rdma {

namespace {

constexpr uint8_t kScopeGlobal = 3;
constexpr int kSuccess = 0;
constexpr int kErrorInit = -31;

PmixInfo TimeoutInfo(int seconds) {
  PmixInfo info{};
  std::strcpy(info.key, "pmix.timeout");
  info.value.type = kPmixInt;
  info.value.integer = seconds;
  return info;
}

// Not what a server has kept of the process: it may have published more since.
PmixInfo RefreshInfo() {
  PmixInfo info{};
  std::strcpy(info.key, "pmix.get.refresh");
  info.value.type = kPmixBool;
  info.value.flag = true;
  return info;
}

void Take(PmixValue* value, PmixDatum* datum) {
  datum->type = value->type;
  switch (value->type) {
    case kPmixString:
      if (value->string != nullptr) {
        datum->bytes.assign(value->string, value->string + std::strlen(value->string));
        std::free(value->string);
      }
      break;
    case kPmixByteObject:
      if (value->object.bytes != nullptr) {
        datum->bytes.assign(value->object.bytes, value->object.bytes + value->object.size);
        std::free(value->object.bytes);
      }
      break;
    case kPmixUint16:
      datum->number = value->uint16;
      break;
    case kPmixUint32:
    case kPmixProcRank:
      datum->number = value->uint32;
      break;
    default:
      break;
  }
  std::free(value);
}

}  // namespace

PmixLibrary& PmixLibrary::Shared() {
  // Never destroyed: a thread may be in a call while the process exits.
  static PmixLibrary* const library = new PmixLibrary;
  return *library;
}

std::string PmixLibrary::Load(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (library_ != nullptr) return path == loaded_ ? "" : loaded_ + " is in use";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return dlerror();
  const auto find = [library, &path](const char* name, auto* function) -> std::string {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) return path + " has no " + name;
    std::memcpy(function, &symbol, sizeof symbol);
    return "";
  };
  for (const std::string& error :
       {find("PMIx_Init", &call_.init), find("PMIx_Finalize", &call_.finalize),
        find("PMIx_Abort", &call_.abort), find("PMIx_Put", &call_.put), find("PMIx_Commit", &call_.commit),
        find("PMIx_Fence", &call_.fence), find("PMIx_Get", &call_.get),
        find("PMIx_Error_string", &call_.error_string)}) {
    if (error.empty()) continue;
    dlclose(library);
    return error;
  }
  library_ = library;
  loaded_ = path;
  return "";
}

bool PmixLibrary::initialized() {
  const std::lock_guard lock(mutex_);
  return initialized_;
}

int PmixLibrary::Initialize(PmixProcess* self) {
  const std::lock_guard lock(mutex_);
  if (library_ == nullptr) return kErrorInit;
  if (!initialized_) {
    const int status = call_.init(&self_, nullptr, 0);
    if (status != kSuccess) return status;
    self_.name_space[sizeof self_.name_space - 1] = '\0';
    initialized_ = true;
  }
  *self = self_;
  return kSuccess;
}

int PmixLibrary::Put(const std::string& key, const std::vector<uint8_t>& bytes) {
  if (!initialized()) return kErrorInit;
  std::vector<char> copy(bytes.begin(), bytes.end());
  PmixValue value{};
  value.type = kPmixByteObject;
  value.object = {copy.data(), copy.size()};
  const int status = call_.put(kScopeGlobal, key.c_str(), &value);
  return status == kSuccess ? call_.commit() : status;
}

int PmixLibrary::Get(uint32_t rank, const std::string& key, int timeout, bool refresh, PmixDatum* datum) {
  if (!initialized()) return kErrorInit;
  PmixProcess process = self_;
  process.rank = rank;
  std::vector<PmixInfo> info;
  if (timeout > 0) info.push_back(TimeoutInfo(timeout));
  if (refresh) info.push_back(RefreshInfo());
  PmixValue* value = nullptr;
  const int status = call_.get(&process, key.c_str(), info.data(), info.size(), &value);
  if (status == kSuccess && value != nullptr) Take(value, datum);
  return status;
}

int PmixLibrary::Fence(int timeout) {
  if (!initialized()) return kErrorInit;
  const PmixInfo info = TimeoutInfo(timeout);
  return call_.fence(nullptr, 0, &info, timeout > 0 ? 1 : 0);
}

int PmixLibrary::Abort(int status, const std::string& message) {
  if (!initialized()) return kErrorInit;
  return call_.abort(status, message.c_str(), nullptr, 0);
}

int PmixLibrary::Finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (!initialized_) return kErrorInit;
    initialized_ = false;
  }
  return call_.finalize(nullptr, 0);
}

std::string PmixLibrary::Describe(int status) {
  const std::lock_guard lock(mutex_);
  const char* const text = library_ == nullptr ? nullptr : call_.error_string(status);
  return text == nullptr ? "" : text;
}

}  // namespace node_rdma
