#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace node_rdma {

// Fields that an extended completion queue can have beyond those of ibv_poll_cq.
enum CompletionField : uint32_t { kTimestamp = 1, kWallclock = 2 };

// ibv_start_poll to ibv_end_poll, with the shape of ibv_poll_cq. `timestamps` gets two values per completion.
int PollExtended(ibv_cq_ex* cq, uint32_t fields, int limit, ibv_wc* completions, uint64_t (*timestamps)[2]);

// ibv_create_cq_ex with the fields that ibv_poll_cq reads and those; null with errno set.
ibv_cq_ex* CreateExtended(ibv_context* verbs, uint32_t entries, void* context, ibv_comp_channel* channel,
                          uint32_t fields);

}  // namespace node_rdma
