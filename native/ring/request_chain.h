#pragma once

#include <utility>

namespace node_rdma {

// Work requests linked for one post: ibv_send_wr or ibv_recv_wr, in memory of somebody else's.
template <typename Request>
class RequestChain {
 public:
  bool empty() const { return first_ == nullptr; }

  void Add(Request* request) {
    if (first_ == nullptr) {
      first_ = request;
    } else {
      last_->next = request;
    }
    last_ = request;
  }

  // The first of them, or null; the chain is empty afterwards.
  Request* Take() { return std::exchange(first_, nullptr); }

 private:
  Request* first_ = nullptr;
  Request* last_ = nullptr;
};

}  // namespace node_rdma
