#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstdint>

#include "ring/records.h"
#include "ring/work_queue.h"

namespace node_rdma {

// The completion of a request as far as every one has it, also one that the device has nothing to say of.
inline WorkCompletion CompletionOf(const WorkQueue::Entry& entry, uint32_t queue, uint8_t status,
                                   uint32_t vendor_error) {
  WorkCompletion completion{};
  completion.slot = entry.slot;
  completion.generation = entry.generation;
  completion.status = status;
  completion.opcode = entry.opcode;
  completion.queue_pair = queue;
  completion.vendor_error = vendor_error;
  return completion;
}

// What JavaScript reads of the completion of a request.
inline void FillCompletion(const ibv_wc& completion, const WorkQueue::Entry& entry, uint32_t queue_pair,
                           bool datagrams, WorkCompletion* out) {
  *out = CompletionOf(entry, queue_pair, static_cast<uint8_t>(completion.status), completion.vendor_err);
  // The other fields mean nothing when the request failed.
  if (completion.status != IBV_WC_SUCCESS) return;
  out->flags = static_cast<uint8_t>(completion.wc_flags);
  out->byte_length = completion.byte_len;
  out->immediate = (completion.wc_flags & IBV_WC_WITH_INV) != 0   ? completion.invalidated_rkey
                   : (completion.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(completion.imm_data)
                                                                  : 0;
  out->source_qp = completion.src_qp;
  if (!datagrams || entry.opcode != kOpcodeReceive) return;
  out->flags |= kDatagram;
  out->source_lid = completion.slid;
  out->service_level = completion.sl;
  out->path_bits = completion.dlid_path_bits;
  out->pkey_index = completion.pkey_index;
}

}  // namespace node_rdma
