#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstdint>

#include "ring/records.h"
#include "ring/work_queue.h"

namespace node_rdma {

// What JavaScript reads of the completion of a request.
inline void FillCompletion(const ibv_wc& completion, const WorkQueue::Entry& entry, uint32_t queue_pair,
                           bool datagrams, WorkCompletion* out) {
  *out = {};
  out->slot = entry.slot;
  out->generation = entry.generation;
  out->status = static_cast<uint8_t>(completion.status);
  out->opcode = entry.opcode;
  out->queue_pair = queue_pair;
  out->vendor_error = completion.vendor_err;
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

// The completion of a request that the device has let go of without one.
inline WorkCompletion FlushedCompletion(const WorkQueue::Entry& entry, uint32_t queue) {
  WorkCompletion completion{};
  completion.slot = entry.slot;
  completion.generation = entry.generation;
  completion.status = IBV_WC_WR_FLUSH_ERR;
  completion.opcode = entry.opcode;
  completion.queue_pair = queue;
  return completion;
}

// The request as far as its completion needs it.
inline WorkRequest RequestOf(const WorkQueue::Entry& entry, uint32_t queue) {
  WorkRequest request{};
  request.queue_pair = queue;
  request.opcode = entry.opcode;
  request.slot = entry.slot;
  request.generation = entry.generation;
  return request;
}

}  // namespace node_rdma
