#include "verbs/extended_poll.h"

#include <cerrno>

namespace node_rdma {

namespace {

void Read(ibv_cq_ex* cq, uint32_t fields, ibv_wc* completion, uint64_t* timestamps) {
  *completion = {};
  completion->wr_id = cq->wr_id;
  completion->status = cq->status;
  completion->qp_num = ibv_wc_read_qp_num(cq);
  if (cq->status != IBV_WC_SUCCESS) {
    completion->vendor_err = ibv_wc_read_vendor_err(cq);
    return;
  }
  completion->opcode = ibv_wc_read_opcode(cq);
  completion->wc_flags = ibv_wc_read_wc_flags(cq);
  completion->byte_len = ibv_wc_read_byte_len(cq);
  if ((completion->wc_flags & IBV_WC_WITH_INV) != 0) {
    completion->invalidated_rkey = ibv_wc_read_invalidated_rkey(cq);
  } else if ((completion->wc_flags & IBV_WC_WITH_IMM) != 0) {
    completion->imm_data = ibv_wc_read_imm_data(cq);
  }
  if ((completion->opcode & IBV_WC_RECV) != 0) {
    completion->src_qp = ibv_wc_read_src_qp(cq);
    completion->slid = static_cast<uint16_t>(ibv_wc_read_slid(cq));
    completion->sl = ibv_wc_read_sl(cq);
    completion->dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
  }
  if ((fields & kTimestamp) != 0) timestamps[0] = ibv_wc_read_completion_ts(cq);
  if ((fields & kWallclock) != 0) timestamps[1] = ibv_wc_read_completion_wallclock_ns(cq);
}

}  // namespace

int PollExtended(ibv_cq_ex* cq, uint32_t fields, int limit, ibv_wc* completions, uint64_t (*timestamps)[2]) {
  ibv_poll_cq_attr attributes{};
  // ENOENT: there is none, and nothing to end.
  int error = ibv_start_poll(cq, &attributes);
  if (error != 0) return error == ENOENT ? 0 : -1;
  int count = 0;
  do {
    timestamps[count][0] = timestamps[count][1] = 0;
    Read(cq, fields, &completions[count], timestamps[count]);
    count++;
    if (count == limit) break;
    error = ibv_next_poll(cq);
  } while (error == 0);
  ibv_end_poll(cq);
  return count;
}

ibv_cq_ex* CreateExtended(ibv_context* verbs, uint32_t entries, void* context, ibv_comp_channel* channel,
                          uint32_t fields) {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = entries;
  attributes.cq_context = context;
  attributes.channel = channel;
  attributes.wc_flags = IBV_WC_STANDARD_FLAGS;
  if ((fields & kTimestamp) != 0) attributes.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  if ((fields & kWallclock) != 0) attributes.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  return ibv_create_cq_ex(verbs, &attributes);
}

}  // namespace node_rdma
