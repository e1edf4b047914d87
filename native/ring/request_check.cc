#include <cerrno>

#include "environment.h"
#include "memory/memory_region.h"
#include "memory/memory_window.h"
#include "ring/request_fields.h"
#include "ring/request_ring.h"
#include "verbs/address_handle.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

int RequestRing::Check(const QueuePair& queue_pair, const WorkRequest& record, const GatherElement* elements,
                       MemoryRegion** regions) const {
  const uint8_t opcode = record.opcode;
  const bool receive = opcode == kOpcodeReceive;
  if (!receive && opcode > IBV_WR_SEND_WITH_INV) return EINVAL;
  int error = receive ? queue_pair.CheckReceive() : queue_pair.CheckSend(opcode);
  if (error != 0) return error;
  const WorkQueue& queue = receive ? queue_pair.receives() : queue_pair.sends();
  if (queue.full()) return ENOMEM;
  if (record.sge_count > (receive ? queue_pair.max_receive_sge() : queue_pair.max_send_sge())) return EINVAL;
  if ((record.flags & kInline) != 0 && (receive || opcode == IBV_WR_RDMA_READ || IsAtomic(opcode)))
    return EINVAL;

  uint64_t total = 0;
  error = CheckElements(queue_pair.protection_domain(), record, elements, regions, &total);
  if (error != 0) return error;
  if ((record.flags & kInline) != 0 && total > queue_pair.max_inline_data()) return EINVAL;
  if (opcode == IBV_WR_RDMA_READ) return CheckRead(queue_pair, record, regions);
  if (opcode == IBV_WR_BIND_MW) return CheckBind(queue_pair, record, regions);
  if (IsAtomic(opcode)) return CheckAtomic(queue_pair, total);
  return queue_pair.datagrams() && !receive ? CheckDatagram(queue_pair, record) : 0;
}

int RequestRing::CheckElements(const ProtectionDomain* domain, const WorkRequest& record,
                               const GatherElement* elements, MemoryRegion** regions, uint64_t* total) const {
  for (uint32_t i = 0; i < record.sge_count; i++) {
    MemoryRegion* region = environment_->handles().Find<MemoryRegion>(elements[i].region);
    if (region == nullptr || region->closing()) return EBADF;
    if (region->protection_domain() != domain) return EINVAL;
    if (elements[i].offset > region->length() || elements[i].length > region->length() - elements[i].offset) {
      return EFAULT;
    }
    if (WritesLocally(record.opcode) && !region->Allows(IBV_ACCESS_LOCAL_WRITE)) return EACCES;
    regions[i] = region;
    *total += elements[i].length;
  }
  return *total > UINT32_MAX ? EMSGSIZE : 0;
}

int RequestRing::CheckAtomic(const QueuePair& queue_pair, uint64_t length) {
  // With a depth of 0 rxe's queue hangs, as it does for a Read.
  if (queue_pair.initiator_depth() == 0) return EOPNOTSUPP;
  // What was there before comes back: 64 bits.
  return length == sizeof(uint64_t) ? 0 : EINVAL;
}

int RequestRing::CheckBind(const QueuePair& queue_pair, const WorkRequest& record,
                           MemoryRegion* const* regions) const {
  const MemoryWindow* window = environment_->handles().Find<MemoryWindow>(LowHalf(record));
  if (window == nullptr || window->closing()) return EBADF;
  // One of type 1 is bound by ibv_bind_mw.
  if (!window->second_type() || window->protection_domain() != queue_pair.protection_domain()) return EINVAL;
  if (record.sge_count != 1 || (HighHalf(record) & ~kWindowAccess) != 0) return EINVAL;
  return regions[0]->Allows(IBV_ACCESS_MW_BIND) ? 0 : EACCES;
}

int RequestRing::CheckDatagram(const QueuePair& queue_pair, const WorkRequest& record) const {
  const AddressHandle* ah = environment_->handles().Find<AddressHandle>(LowHalf(record));
  if (ah == nullptr || ah->closing()) return EBADF;
  return ah->protection_domain() == queue_pair.protection_domain() ? 0 : EINVAL;
}

int RequestRing::CheckRead(const QueuePair& queue_pair, const WorkRequest& record,
                           MemoryRegion* const* regions) const {
  if (record.sge_count > queue_pair.max_read_sge()) return EINVAL;
  // With a depth of 0 siw's send queue is wedged by the failed doorbell, and rxe's hangs.
  if (queue_pair.initiator_depth() == 0) return EOPNOTSUPP;
  if (!queue_pair.iwarp()) return 0;
  // siw takes the stale element of a reused slot for a Read without one, and refuses a fenced Read after it
  // has taken it: both end the queue.
  if (record.sge_count == 0) return EINVAL;
  if ((record.flags & kFence) != 0) return EOPNOTSUPP;
  // RFC 5040 section 5.3: the data of a Read Response is placed through the sink's steering tag.
  return regions[0]->Allows(IBV_ACCESS_REMOTE_WRITE) ? 0 : EACCES;
}

}  // namespace node_rdma
