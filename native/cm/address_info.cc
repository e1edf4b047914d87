#include "cm/address_info.h"

#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "cm/address.h"
#include "environment.h"
#include "support/arguments.h"

namespace node_rdma {

namespace {

// rdma_getaddrinfo returns -1 with errno, or one of getaddrinfo's own codes.
int ErrnoOf(int result) {
  switch (result) {
    case 0:
      return 0;
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
      return ENOENT;
    case EAI_AGAIN:
      return EAGAIN;
    case EAI_MEMORY:
      return ENOMEM;
    default:
      return errno != 0 ? errno : EINVAL;
  }
}

Napi::Value AddressValue(Napi::Env env, const sockaddr* address) {
  const TextAddress text = FormatAddress(address);
  if (text.family == 0) return env.Null();
  Napi::Object result = Napi::Object::New(env);
  result.Set("address", text.address);
  result.Set("port", text.port);
  return result;
}

Napi::Value TextValue(Napi::Env env, const char* text) {
  return text == nullptr ? env.Null() : Napi::String::New(env, text);
}

Napi::Value BytesValue(Napi::Env env, const void* data, size_t length) {
  if (data == nullptr || length == 0) return env.Null();
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, length);
  std::memcpy(bytes.Data(), data, length);
  return bytes;
}

struct Lookup {
  std::optional<std::string> node;
  std::optional<std::string> service;
  sockaddr_storage source{};
  sockaddr_storage destination{};
  rdma_addrinfo hints{};
  rdma_addrinfo* list = nullptr;
  ~Lookup() {
    if (list != nullptr) rdma_freeaddrinfo(list);
  }
};

// An address among the hints; false when there is none.
bool ReadHint(Arguments& arguments, Napi::Object hints, const char* name, sockaddr_storage* address) {
  const Napi::Value value = arguments.Property(hints, name);
  if (!arguments.ok() || value.IsNull() || value.IsUndefined()) return false;
  if (!value.IsObject()) {
    arguments.FailType(name, "an object or null");
    return false;
  }
  const Napi::Object object = value.As<Napi::Object>();
  const std::string text = arguments.String(object, "address");
  const uint32_t port = arguments.U32(object, "port", 0, UINT16_MAX);
  if (!arguments.ok()) return false;
  if (ParseAddress(text, static_cast<uint16_t>(port), address)) return true;
  arguments.Fail(EINVAL, "getaddrinfo");
  return false;
}

void ReadHints(Arguments& arguments, Napi::Object object, Lookup* lookup) {
  rdma_addrinfo& hints = lookup->hints;
  hints.ai_flags = static_cast<int>(arguments.U32(object, "flags", 0, UINT16_MAX));
  hints.ai_family = static_cast<int>(arguments.U32(object, "family", 0, UINT16_MAX));
  hints.ai_port_space = static_cast<int>(arguments.U32(object, "portSpace", 0, UINT16_MAX));
  hints.ai_qp_type = static_cast<int>(arguments.U32(object, "queuePairType", 0, UINT16_MAX));
  if (ReadHint(arguments, object, "source", &lookup->source)) {
    hints.ai_src_addr = reinterpret_cast<sockaddr*>(&lookup->source);
    hints.ai_src_len = AddressLength(lookup->source);
  }
  if (ReadHint(arguments, object, "destination", &lookup->destination)) {
    hints.ai_dst_addr = reinterpret_cast<sockaddr*>(&lookup->destination);
    hints.ai_dst_len = AddressLength(lookup->destination);
  }
}

Napi::Object Entry(Napi::Env env, const rdma_addrinfo& info) {
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("flags", info.ai_flags);
  entry.Set("family", info.ai_family);
  entry.Set("portSpace", info.ai_port_space);
  entry.Set("queuePairType", info.ai_qp_type);
  entry.Set("sourceAddress", AddressValue(env, info.ai_src_addr));
  entry.Set("destinationAddress", AddressValue(env, info.ai_dst_addr));
  entry.Set("sourceName", TextValue(env, info.ai_src_canonname));
  entry.Set("destinationName", TextValue(env, info.ai_dst_canonname));
  entry.Set("route", BytesValue(env, info.ai_route, info.ai_route_len));
  entry.Set("connect", BytesValue(env, info.ai_connect, info.ai_connect_len));
  return entry;
}

Napi::Value GetAddressInfo(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  auto lookup = std::make_shared<Lookup>();
  lookup->node = arguments.OptionalString(0, "node");
  lookup->service = arguments.OptionalString(1, "service");
  ReadHints(arguments, arguments.Object(2, "hints"), lookup.get());
  if (!arguments.ok()) return info.Env().Undefined();
  const rdma_addrinfo& hints = lookup->hints;
  if (!lookup->node && !lookup->service && hints.ai_src_addr == nullptr && hints.ai_dst_addr == nullptr) {
    return arguments.Fail(EINVAL, "rdma_getaddrinfo");
  }
  Environment* environment = arguments.environment();
  return environment->RunInPool(
      "rdma_getaddrinfo",
      [lookup] {
        errno = 0;
        return ErrnoOf(rdma_getaddrinfo(lookup->node ? lookup->node->c_str() : nullptr,
                                        lookup->service ? lookup->service->c_str() : nullptr, &lookup->hints,
                                        &lookup->list));
      },
      [environment, lookup]() -> Napi::Value {
        Napi::Env env(environment->env());
        Napi::Array result = Napi::Array::New(env);
        uint32_t count = 0;
        for (const rdma_addrinfo* each = lookup->list; each != nullptr; each = each->ai_next) {
          result.Set(count++, Entry(env, *each));
        }
        return result;
      });
}

}  // namespace

void ExportAddressInfo(Napi::Object exports) { ExportFunction(exports, "getAddressInfo", GetAddressInfo); }

}  // namespace node_rdma
