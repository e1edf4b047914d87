#include "verbs/address_vector.h"

#include <cstring>

#include "support/result.h"

namespace node_rdma {

void ReadAddressVector(Arguments& arguments, Napi::Object object, ibv_ah_attr* attributes) {
  const auto gid = arguments.OptionalBytes(object, "gid");
  if (gid.has_value()) {
    if (gid->size() != sizeof attributes->grh.dgid.raw)
      arguments.FailType("gid", "16 bytes");
    else
      std::memcpy(attributes->grh.dgid.raw, gid->data(), gid->size());
    attributes->is_global = 1;
  }
  const auto u8 = [&](const char* name, uint32_t min, uint32_t max) {
    return static_cast<uint8_t>(arguments.U32(object, name, min, max));
  };
  attributes->grh.sgid_index = u8("sgidIndex", 0, UINT8_MAX);
  attributes->grh.hop_limit = u8("hopLimit", 0, UINT8_MAX);
  attributes->grh.traffic_class = u8("trafficClass", 0, UINT8_MAX);
  attributes->grh.flow_label = arguments.U32(object, "flowLabel", 0, 0xfffff);
  attributes->dlid = static_cast<uint16_t>(arguments.U32(object, "lid", 0, UINT16_MAX));
  attributes->src_path_bits = u8("pathBits", 0, 0x7f);
  attributes->static_rate = u8("staticRate", 0, UINT8_MAX);
  attributes->sl = u8("serviceLevel", 0, 15);
  attributes->port_num = u8("portNumber", 1, UINT8_MAX);
}

Napi::Object DescribeAddressVector(Napi::Env env, const ibv_ah_attr& attributes) {
  Napi::Object result = Napi::Object::New(env);
  if (attributes.is_global != 0) {
    result.Set("gid", GidBytes(env, attributes.grh.dgid));
  } else {
    result.Set("gid", env.Null());
  }
  SetNumbers(result, {
                         {"sgidIndex", attributes.grh.sgid_index},
                         {"hopLimit", attributes.grh.hop_limit},
                         {"trafficClass", attributes.grh.traffic_class},
                         {"flowLabel", attributes.grh.flow_label},
                         {"lid", attributes.dlid},
                         {"pathBits", attributes.src_path_bits},
                         {"staticRate", attributes.static_rate},
                         {"serviceLevel", attributes.sl},
                         {"portNumber", attributes.port_num},
                     });
  return result;
}

Napi::Uint8Array GidBytes(Napi::Env env, const ibv_gid& gid) {
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, sizeof gid.raw);
  std::memcpy(bytes.Data(), gid.raw, sizeof gid.raw);
  return bytes;
}

}  // namespace node_rdma
