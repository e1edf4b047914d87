#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "support/object.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class AddressHandle : public Object {
 public:
  static constexpr Kind kKind = Kind::kAddressHandle;

  AddressHandle(std::shared_ptr<ProtectionDomain> pd, ibv_ah* ah);
  ~AddressHandle() override;

  ibv_ah* ah() const { return ah_; }
  const ProtectionDomain* protection_domain() const { return pd_.get(); }

  static void Export(Napi::Object exports);

 private:
  const Membership<ProtectionDomain> pd_;
  ibv_ah* const ah_;
};

}  // namespace node_rdma
