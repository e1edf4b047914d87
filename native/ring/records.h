#pragma once

#include <cstdint>

namespace node_rdma {

// What JavaScript writes: 64 bytes. More than one gather element: records of Continuation follow.
// `queue_pair` of a receive may name a shared receive queue. Some opcodes read the remote fields in their own
// way:
//   a datagram: remote_address is address handle + remote queue pair number << 32, rkey is the Q_Key;
//   binding a memory window: remote_address is window + access flags << 32, rkey is the new remote key, and
//   the only element is what the window opens.
struct WorkRequest {
  uint32_t queue_pair;
  uint8_t opcode;
  uint8_t flags;
  uint8_t sge_count;
  uint8_t reserved;
  uint32_t slot;
  uint32_t generation;
  uint32_t region;
  uint32_t length;
  uint64_t offset;
  uint64_t remote_address;
  uint32_t rkey;
  uint32_t immediate;
  uint64_t compare_add;
  uint64_t swap;
};
static_assert(sizeof(WorkRequest) == 64);

struct GatherElement {
  uint32_t region;
  uint32_t length;
  uint64_t offset;
};

struct Continuation {
  GatherElement elements[4];
};
static_assert(sizeof(Continuation) == sizeof(WorkRequest));

// What JavaScript reads: 64 bytes.
struct WorkCompletion {
  uint32_t slot;
  uint32_t generation;
  uint8_t status;
  uint8_t opcode;
  uint8_t flags;
  uint8_t reserved;
  uint32_t byte_length;
  uint32_t queue_pair;
  uint32_t vendor_error;
  uint32_t immediate;
  uint32_t source_qp;
  // What an address handle is made of, for a datagram.
  uint16_t source_lid;
  uint8_t service_level;
  uint8_t path_bits;
  uint16_t pkey_index;
  uint16_t reserved_too;
  // Of an extended completion queue that was asked for them, else 0.
  uint64_t timestamp;
  uint64_t wallclock;
  uint32_t unused[2];
};
static_assert(sizeof(WorkCompletion) == 64);

// Indices that both sides read; u32, so that JavaScript reads them in place.
struct Control {
  uint32_t request_head;          // written by JavaScript
  uint32_t request_tail;          // written here
  uint32_t in_callback;           // written here: submissions are flushed when the callback returns
  uint32_t completions_consumed;  // written by JavaScript
  uint32_t completions_in_use;    // written by JavaScript: a batch is being read
  uint32_t unused[11];
};
static_assert(sizeof(Control) == 64);

enum RequestFlags : uint8_t { kSignaled = 1, kFence = 2, kSolicited = 4, kInline = 8 };

inline constexpr uint8_t kOpcodeReceive = 128;
// Beside ibv_wc_flags, which end at 64: the message came to a queue pair of datagrams.
inline constexpr uint8_t kDatagram = 0x80;
// Status of a request that never reached the device; vendor_error is an errno.
inline constexpr uint8_t kPostFailed = 0xf0;
inline constexpr uint32_t kMaxSges = 16;

}  // namespace node_rdma
