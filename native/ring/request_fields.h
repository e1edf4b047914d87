#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "ring/records.h"

namespace node_rdma {

inline bool IsAtomic(uint8_t opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

inline bool WritesLocally(uint8_t opcode) {
  return opcode == kOpcodeReceive || opcode == IBV_WR_RDMA_READ || IsAtomic(opcode);
}

// Reads and atomics take the memory of a slot until the response is there, whatever completes before.
inline bool NeedsCompletion(uint8_t opcode) { return opcode == IBV_WR_RDMA_READ || IsAtomic(opcode); }

// What requests without an address of remote memory put into its place.
inline uint32_t LowHalf(const WorkRequest& record) { return static_cast<uint32_t>(record.remote_address); }
inline uint32_t HighHalf(const WorkRequest& record) {
  return static_cast<uint32_t>(record.remote_address >> 32);
}

// What a memory window may open to the peer.
inline constexpr uint32_t kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace node_rdma
