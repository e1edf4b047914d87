#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ring/records.h"

namespace node_rdma {

class Environment;
class MemoryRegion;
class ProtectionDomain;
class QueuePair;
class SharedReceiveQueue;

// The submission ring of one environment. Flush() copies each record before it checks it, so nothing that
// JavaScript changes meanwhile matters, and posts one chain per queue pair.
class RequestRing {
 public:
  static constexpr uint32_t kCapacity = 1024;

  explicit RequestRing(Environment* environment);
  ~RequestRing();

  void* data() const { return records_; }
  static constexpr size_t size() { return kCapacity * sizeof(WorkRequest); }

  void Flush();

 private:
  void Take(const WorkRequest& record, const GatherElement* more);
  // A receive that names no queue pair may name a shared receive queue.
  void TakeShared(const WorkRequest& record, const GatherElement* elements);
  // 0, or the errno for which the request is refused before the device sees it.
  int Check(const QueuePair& queue_pair, const WorkRequest& record, const GatherElement* elements,
            MemoryRegion** regions) const;
  int CheckElements(const ProtectionDomain* domain, const WorkRequest& record, const GatherElement* elements,
                    MemoryRegion** regions, uint64_t* total) const;
  static int CheckAtomic(const QueuePair& queue_pair, uint64_t length);
  int CheckBind(const QueuePair& queue_pair, const WorkRequest& record, MemoryRegion* const* regions) const;
  int CheckDatagram(const QueuePair& queue_pair, const WorkRequest& record) const;
  int CheckRead(const QueuePair& queue_pair, const WorkRequest& record, MemoryRegion* const* regions) const;
  void Chain(QueuePair* queue_pair, const WorkRequest& record, const GatherElement* elements,
             MemoryRegion* const* regions);
  ibv_sge* AddElements(const WorkRequest& record, const GatherElement* elements, MemoryRegion* const* regions,
                       int* count);
  ibv_recv_wr* AddReceive(uint64_t wr_id, ibv_sge* sges, int sge_count);
  void AddBind(const WorkRequest& record, const ibv_sge& element, ibv_send_wr* wr) const;
  void PostBind(QueuePair* queue_pair, const WorkRequest& record);
  void PostChains();
  void PostReceives(QueuePair* queue_pair);
  // False when the provider refused any.
  bool PostSends(QueuePair* queue_pair);
  void PostShared(SharedReceiveQueue* srq);

  Environment* const environment_;
  WorkRequest* records_;
  bool flushing_ = false;
  // Storage of the chains of one flush; the vectors keep their capacity.
  std::vector<std::shared_ptr<QueuePair>> touched_;
  std::vector<std::shared_ptr<SharedReceiveQueue>> touched_shared_;
  std::unique_ptr<ibv_send_wr[]> sends_;
  std::unique_ptr<ibv_recv_wr[]> receives_;
  std::unique_ptr<ibv_sge[]> sges_;
  uint32_t send_count_ = 0;
  uint32_t receive_count_ = 0;
  uint32_t sge_count_ = 0;
};

}  // namespace node_rdma
