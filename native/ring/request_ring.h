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
class QueuePair;

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
  // 0, or the errno for which the request is refused before the device sees it.
  int Check(const QueuePair& queue_pair, const WorkRequest& record, const GatherElement* elements,
            MemoryRegion** regions) const;
  int CheckRead(const QueuePair& queue_pair, const WorkRequest& record, MemoryRegion* const* regions) const;
  void Chain(QueuePair* queue_pair, const WorkRequest& record, const GatherElement* elements,
             MemoryRegion* const* regions);
  void PostChains();
  void PostReceives(QueuePair* queue_pair);
  void PostSends(QueuePair* queue_pair);

  Environment* const environment_;
  WorkRequest* records_;
  bool flushing_ = false;
  // Storage of the chains of one flush; the vectors keep their capacity.
  std::vector<std::shared_ptr<QueuePair>> touched_;
  std::unique_ptr<ibv_send_wr[]> sends_;
  std::unique_ptr<ibv_recv_wr[]> receives_;
  std::unique_ptr<ibv_sge[]> sges_;
  uint32_t send_count_ = 0;
  uint32_t receive_count_ = 0;
  uint32_t sge_count_ = 0;
};

}  // namespace node_rdma
