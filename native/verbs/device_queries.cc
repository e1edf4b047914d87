#include <endian.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "support/arguments.h"
#include "support/result.h"
#include "verbs/address_vector.h"
#include "verbs/device.h"
#include "verbs/extended_poll.h"

namespace node_rdma {

namespace {

Napi::Value QueryDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_device_attr attributes;
  const int error = ErrnoOf(ibv_query_device(device->context()->verbs(), &attributes));
  if (error != 0) return arguments.Fail(error, "ibv_query_device");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("firmwareVersion",
             std::string(attributes.fw_ver, strnlen(attributes.fw_ver, sizeof attributes.fw_ver)));
  result.Set("maxMrSize", Napi::BigInt::New(info.Env(), attributes.max_mr_size));
  SetNumbers(result, {
                         {"vendorId", attributes.vendor_id},
                         {"vendorPartId", attributes.vendor_part_id},
                         {"hardwareVersion", attributes.hw_ver},
                         {"maxQp", attributes.max_qp},
                         {"maxQpWr", attributes.max_qp_wr},
                         {"deviceCapFlags", attributes.device_cap_flags},
                         {"maxSge", attributes.max_sge},
                         {"maxSgeRd", attributes.max_sge_rd},
                         {"maxCq", attributes.max_cq},
                         {"maxCqe", attributes.max_cqe},
                         {"maxMr", attributes.max_mr},
                         {"maxPd", attributes.max_pd},
                         {"maxQpRdAtom", attributes.max_qp_rd_atom},
                         {"maxQpInitRdAtom", attributes.max_qp_init_rd_atom},
                         {"atomicCap", attributes.atomic_cap},
                         {"maxMw", attributes.max_mw},
                         {"maxMcastGrp", attributes.max_mcast_grp},
                         {"maxAh", attributes.max_ah},
                         {"maxSrq", attributes.max_srq},
                         {"maxSrqWr", attributes.max_srq_wr},
                         {"maxSrqSge", attributes.max_srq_sge},
                         {"maxPkeys", attributes.max_pkeys},
                         {"physPortCnt", attributes.phys_port_cnt},
                     });
  return result;
}

Napi::Value QueryPort(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_port_attr attributes;
  const int error =
      ErrnoOf(ibv_query_port(device->context()->verbs(), static_cast<uint8_t>(port), &attributes));
  if (error != 0) return arguments.Fail(error, "ibv_query_port");
  Napi::Object result = Napi::Object::New(info.Env());
  SetNumbers(result, {
                         {"state", attributes.state},
                         {"maxMtu", attributes.max_mtu},
                         {"activeMtu", attributes.active_mtu},
                         {"gidTableLength", attributes.gid_tbl_len},
                         {"portCapFlags", attributes.port_cap_flags},
                         {"maxMessageSize", attributes.max_msg_sz},
                         {"pkeyTableLength", attributes.pkey_tbl_len},
                         {"badPkeyCounter", attributes.bad_pkey_cntr},
                         {"qkeyViolationCounter", attributes.qkey_viol_cntr},
                         {"lid", attributes.lid},
                         {"smLid", attributes.sm_lid},
                         {"lmc", attributes.lmc},
                         {"maxVlNumber", attributes.max_vl_num},
                         {"smSl", attributes.sm_sl},
                         {"subnetTimeout", attributes.subnet_timeout},
                         {"initTypeReply", attributes.init_type_reply},
                         {"activeWidth", attributes.active_width},
                         {"activeSpeed", attributes.active_speed},
                         {"physicalState", attributes.phys_state},
                         {"linkLayer", attributes.link_layer},
                         {"flags", attributes.flags},
                         {"portCapFlags2", attributes.port_cap_flags2},
                     });
  return result;
}

Napi::Value QueryGid(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const uint32_t index = arguments.U32(2, "index", 0, INT32_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_gid gid;
  errno = EINVAL;
  if (ibv_query_gid(device->context()->verbs(), static_cast<uint8_t>(port), static_cast<int>(index), &gid) !=
      0) {
    return arguments.Fail(errno, "ibv_query_gid");
  }
  return GidBytes(info.Env(), gid);
}

Napi::Value QueryGidEntry(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const uint32_t index = arguments.U32(2, "index", 0, INT32_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_gid_entry entry{};
  const int error = ErrnoOf(ibv_query_gid_ex(device->context()->verbs(), port, index, &entry, 0));
  if (error != 0) return arguments.Fail(error, "ibv_query_gid_ex");
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("gid", GidBytes(info.Env(), entry.gid));
  result.Set("type", entry.gid_type);
  result.Set("interfaceIndex", entry.ndev_ifindex);
  return result;
}

Napi::Value QueryPkey(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t port = arguments.U32(1, "port", 1, UINT8_MAX);
  const uint32_t index = arguments.U32(2, "index", 0, INT32_MAX);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  uint16_t pkey = 0;
  errno = EINVAL;
  if (ibv_query_pkey(device->context()->verbs(), static_cast<uint8_t>(port), static_cast<int>(index),
                     &pkey) != 0) {
    return arguments.Fail(errno, "ibv_query_pkey");
  }
  return Napi::Number::New(info.Env(), be16toh(pkey));
}

Napi::Value QueryDeviceExtended(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_device_attr_ex attributes{};
  const int error = ErrnoOf(ibv_query_device_ex(device->context()->verbs(), nullptr, &attributes));
  if (error != 0) return arguments.Fail(error, "ibv_query_device_ex");
  Napi::Object result = Napi::Object::New(info.Env());
  const std::pair<const char*, uint64_t> wide[] = {
      {"completionTimestampMask", attributes.completion_timestamp_mask},
      {"coreClock", attributes.hca_core_clock},
      {"deviceCapFlagsExtended", attributes.device_cap_flags_ex},
      {"onDemandPagingCaps", attributes.odp_caps.general_caps},
      {"maxDeviceMemorySize", attributes.max_dm_size},
  };
  for (const auto& [name, value] : wide) result.Set(name, Napi::BigInt::New(info.Env(), value));
  SetNumbers(result, {
                         {"maxTso", attributes.tso_caps.max_tso},
                         {"maxWorkQueuesReceive", attributes.max_wq_type_rq},
                         {"rawPacketCaps", attributes.raw_packet_caps},
                         {"maxTagMatchingSrqs", attributes.tm_caps.max_num_tags},
                         {"maxCqModerationCount", attributes.cq_mod_caps.max_cq_count},
                         {"maxCqModerationPeriod", attributes.cq_mod_caps.max_cq_period},
                         {"pciAtomicFetchAdd", attributes.pci_atomic_caps.fetch_add},
                         {"pciAtomicSwap", attributes.pci_atomic_caps.swap},
                         {"pciAtomicCompareSwap", attributes.pci_atomic_caps.compare_swap},
                     });
  return result;
}

// Which completion fields an extended queue of this device has: found out by making one, as no attribute
// tells.
Napi::Value QueryCompletionFields(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Device> device = arguments.HandleAt<Device>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  uint32_t fields = 0;
  for (const uint32_t field : {kTimestamp, kWallclock}) {
    ibv_cq_ex* cq = CreateExtended(device->context()->verbs(), 1, nullptr, nullptr, field);
    if (cq == nullptr) continue;
    fields |= field;
    ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  }
  return Napi::Number::New(info.Env(), fields);
}

}  // namespace

void Device::ExportQueries(Napi::Object exports) {
  ExportFunction(exports, "queryDevice", QueryDevice);
  ExportFunction(exports, "queryDeviceExtended", QueryDeviceExtended);
  ExportFunction(exports, "queryCompletionFields", QueryCompletionFields);
  ExportFunction(exports, "queryPort", QueryPort);
  ExportFunction(exports, "queryGid", QueryGid);
  ExportFunction(exports, "queryGidEntry", QueryGidEntry);
  ExportFunction(exports, "queryPkey", QueryPkey);
}

}  // namespace node_rdma
