#include "verbs/address_handle.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "support/arguments.h"
#include "verbs/address_vector.h"

namespace node_rdma {

namespace {

Napi::Value Create(Arguments& arguments, const std::shared_ptr<ProtectionDomain>& pd,
                   ibv_ah_attr& attributes) {
  ibv_ah* ah = ibv_create_ah(pd->pd(), &attributes);
  if (ah == nullptr) return arguments.Fail(errno, "ibv_create_ah");
  return Napi::Number::New(arguments.env(),
                           arguments.environment()->Adopt(std::make_shared<AddressHandle>(pd, ah)));
}

Napi::Value CreateAddressHandle(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_ah_attr attributes{};
  ReadAddressVector(arguments, arguments.Object(1, "attributes"), &attributes);
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  // iWARP has connections only (RFC 5040): there is nothing that could use one.
  if (pd->context()->iwarp()) return arguments.Fail(EOPNOTSUPP, "ibv_create_ah");
  return Create(arguments, pd, attributes);
}

// The way back to the sender of a datagram: attributes by ibv_init_ah_from_wc, from what its completion and
// its global routing header say.
Napi::Value ReplyAddress(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const Napi::Object object = arguments.Object(2, "completion");
  ibv_wc completion{};
  completion.slid = static_cast<uint16_t>(arguments.U32(object, "sourceLid", 0, UINT16_MAX));
  completion.sl = static_cast<uint8_t>(arguments.U32(object, "serviceLevel", 0, 15));
  completion.dlid_path_bits = static_cast<uint8_t>(arguments.U32(object, "pathBits", 0, UINT8_MAX));
  completion.pkey_index = static_cast<uint16_t>(arguments.U32(object, "pkeyIndex", 0, UINT16_MAX));
  completion.src_qp = arguments.U32(object, "queuePairNumber", 0, 0xff'ffff);
  const auto header = arguments.OptionalBytes(3, "header");
  ibv_grh grh{};
  if (header.has_value()) {
    if (header->size() != sizeof grh)
      arguments.FailType("header", "40 bytes or null");
    else
      std::memcpy(&grh, header->data(), sizeof grh);
    completion.wc_flags = IBV_WC_GRH;
  }
  const std::shared_ptr<ProtectionDomain> pd = arguments.HandleAt<ProtectionDomain>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  if (pd->context()->iwarp()) return arguments.Fail(EOPNOTSUPP, "ibv_init_ah_from_wc");
  ibv_ah_attr attributes{};
  errno = EINVAL;
  if (ibv_init_ah_from_wc(pd->context()->verbs(), static_cast<uint8_t>(port), &completion, &grh,
                          &attributes) != 0) {
    return arguments.Fail(errno, "ibv_init_ah_from_wc");
  }
  return DescribeAddressVector(info.Env(), attributes);
}

Napi::Value DestroyAddressHandle(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<AddressHandle> ah = arguments.HandleAt<AddressHandle>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ah->Close();
  arguments.environment()->handles().Remove(ah->handle());
  return info.Env().Undefined();
}

}  // namespace

AddressHandle::AddressHandle(std::shared_ptr<ProtectionDomain> pd, ibv_ah* ah)
    : Object(kKind), pd_(std::move(pd)), ah_(ah) {}

AddressHandle::~AddressHandle() { ibv_destroy_ah(ah_); }

void AddressHandle::Export(Napi::Object exports) {
  ExportFunction(exports, "createAddressHandle", CreateAddressHandle);
  ExportFunction(exports, "replyAddress", ReplyAddress);
  ExportFunction(exports, "destroyAddressHandle", DestroyAddressHandle);
}

}  // namespace node_rdma
