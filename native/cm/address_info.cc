#include "cm/address_info.h"

#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
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

struct Lookup {
  std::optional<std::string> node;
  std::optional<std::string> service;
  rdma_addrinfo hints{};
  rdma_addrinfo* list = nullptr;
  ~Lookup() {
    if (list != nullptr) rdma_freeaddrinfo(list);
  }
};

Napi::Value GetAddressInfo(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  auto lookup = std::make_shared<Lookup>();
  lookup->node = arguments.OptionalString(0, "node");
  lookup->service = arguments.OptionalString(1, "service");
  const Napi::Object hints = arguments.Object(2, "hints");
  lookup->hints.ai_flags = static_cast<int>(arguments.U32(hints, "flags", 0, UINT16_MAX));
  lookup->hints.ai_family = static_cast<int>(arguments.U32(hints, "family", 0, UINT16_MAX));
  lookup->hints.ai_port_space = static_cast<int>(arguments.U32(hints, "portSpace", 0, UINT16_MAX));
  if (!arguments.ok()) return info.Env().Undefined();
  if (!lookup->node.has_value() && !lookup->service.has_value())
    return arguments.Fail(EINVAL, "rdma_getaddrinfo");
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
          Napi::Object entry = Napi::Object::New(env);
          entry.Set("family", each->ai_family);
          entry.Set("portSpace", each->ai_port_space);
          entry.Set("qpType", each->ai_qp_type);
          entry.Set("sourceAddress", AddressValue(env, each->ai_src_addr));
          entry.Set("destinationAddress", AddressValue(env, each->ai_dst_addr));
          result.Set(count++, entry);
        }
        return result;
      });
}

}  // namespace

void ExportAddressInfo(Napi::Object exports) {
  exports.Set("getAddressInfo", Napi::Function::New(exports.Env(), GetAddressInfo, "getAddressInfo"));
}

}  // namespace node_rdma
