#if !__has_include(<rdma/rdma_cma.h>) || !__has_include(<infiniband/verbs.h>)
#error \
    "node-rdma is compiled against rdma-core: apt-get install librdmacm-dev libibverbs-dev (Debian's names)"
#endif

#include <napi.h>

#include <cstddef>
#include <string>
#include <utility>

#include "cm/address_info.h"
#include "cm/cm_id.h"
#include "cm/connection_functions.h"
#include "cm/event_channel.h"
#include "environment.h"
#include "job/pmix.h"
#include "memory/memory_region.h"
#include "memory/memory_window.h"
#include "ring/records.h"
#include "support/arguments.h"
#include "support/object.h"
#include "verbs/address_handle.h"
#include "verbs/completion_channel.h"
#include "verbs/completion_queue.h"
#include "verbs/device.h"
#include "verbs/protection_domain.h"
#include "verbs/queue_pair.h"
#include "verbs/shared_receive_queue.h"

namespace node_rdma {

namespace {

using Field = std::pair<const char*, size_t>;

template <size_t N>
Napi::Object Record(Napi::Env env, size_t size, const Field (&fields)[N]) {
  Napi::Object record = Napi::Object::New(env);
  record.Set("size", static_cast<double>(size));
  for (const auto& [name, offset] : fields) record.Set(name, static_cast<double>(offset));
  return record;
}

// The offsets that JavaScript reads and writes with, as this compiler laid the records out.
Napi::Object Layout(Napi::Env env) {
  Napi::Object layout = Napi::Object::New(env);
  layout.Set("workRequest", Record(env, sizeof(WorkRequest),
                                   {{"queuePair", offsetof(WorkRequest, queue_pair)},
                                    {"opcode", offsetof(WorkRequest, opcode)},
                                    {"flags", offsetof(WorkRequest, flags)},
                                    {"sgeCount", offsetof(WorkRequest, sge_count)},
                                    {"slot", offsetof(WorkRequest, slot)},
                                    {"generation", offsetof(WorkRequest, generation)},
                                    {"region", offsetof(WorkRequest, region)},
                                    {"length", offsetof(WorkRequest, length)},
                                    {"offset", offsetof(WorkRequest, offset)},
                                    {"remoteAddress", offsetof(WorkRequest, remote_address)},
                                    {"rkey", offsetof(WorkRequest, rkey)},
                                    {"immediate", offsetof(WorkRequest, immediate)},
                                    {"compareAdd", offsetof(WorkRequest, compare_add)},
                                    {"swap", offsetof(WorkRequest, swap)}}));
  layout.Set("workCompletion", Record(env, sizeof(WorkCompletion),
                                      {{"slot", offsetof(WorkCompletion, slot)},
                                       {"generation", offsetof(WorkCompletion, generation)},
                                       {"status", offsetof(WorkCompletion, status)},
                                       {"opcode", offsetof(WorkCompletion, opcode)},
                                       {"flags", offsetof(WorkCompletion, flags)},
                                       {"byteLength", offsetof(WorkCompletion, byte_length)},
                                       {"queuePair", offsetof(WorkCompletion, queue_pair)},
                                       {"vendorError", offsetof(WorkCompletion, vendor_error)},
                                       {"immediate", offsetof(WorkCompletion, immediate)},
                                       {"sourceQp", offsetof(WorkCompletion, source_qp)},
                                       {"sourceLid", offsetof(WorkCompletion, source_lid)},
                                       {"serviceLevel", offsetof(WorkCompletion, service_level)},
                                       {"pathBits", offsetof(WorkCompletion, path_bits)},
                                       {"pkeyIndex", offsetof(WorkCompletion, pkey_index)},
                                       {"timestamp", offsetof(WorkCompletion, timestamp)},
                                       {"wallclock", offsetof(WorkCompletion, wallclock)}}));
  layout.Set("control", Record(env, sizeof(Control),
                               {{"requestHead", offsetof(Control, request_head)},
                                {"requestTail", offsetof(Control, request_tail)},
                                {"inCallback", offsetof(Control, in_callback)},
                                {"completionsConsumed", offsetof(Control, completions_consumed)},
                                {"completionsInUse", offsetof(Control, completions_in_use)}}));
  return layout;
}

Napi::Value Initialize(const Napi::CallbackInfo& info) {
  if (!info[0].IsObject()) {
    napi_throw_type_error(info.Env(), "ERR_INVALID_ARG_TYPE", "The \"hooks\" argument must be an object");
    return info.Env().Undefined();
  }
  return info.Env().GetInstanceData<Environment>()->Initialize(info[0].As<Napi::Object>());
}

Napi::Value Flush(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  if (arguments.ok()) arguments.environment()->requests().Flush();
  return info.Env().Undefined();
}

Napi::Value ObjectCounts(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  const auto counts = Object::Counts();
  for (size_t i = 0; i < counts.size(); i++) result.Set(Object::NameOf(static_cast<Kind>(i)), counts[i]);
  return result;
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment(env));
  exports.Set("layout", Layout(env));
  ExportFunction(exports, "initialize", Initialize);
  ExportFunction(exports, "flush", Flush);
  ExportFunction(exports, "objectCounts", ObjectCounts);
  Device::Export(exports);
  ProtectionDomain::Export(exports);
  MemoryRegion::Export(exports);
  CompletionChannel::Export(exports);
  CompletionQueue::Export(exports);
  QueuePair::Export(exports);
  SharedReceiveQueue::Export(exports);
  AddressHandle::Export(exports);
  MemoryWindow::Export(exports);
  EventChannel::Export(exports);
  CmId::Export(exports);
  ExportConnectionFunctions(exports);
  ExportAddressInfo(exports);
  ExportPmix(exports);
  return exports;
}

}  // namespace

}  // namespace node_rdma

static Napi::Object InitAddon(Napi::Env env, Napi::Object exports) { return node_rdma::Init(env, exports); }

NODE_API_MODULE(node_rdma, InitAddon)
