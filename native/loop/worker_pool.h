#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace node_rdma {

// Threads for C calls that may block, one pool per process, never libuv's. It grows with the calls that hang:
// a new thread starts whenever all are busy, up to a bound; one that has been idle for a while ends.
class WorkerPool {
 public:
  static WorkerPool& Shared();

  void Run(std::function<void()> job);

 private:
  void Serve();

  static constexpr int kMaxThreads = 128;
  static constexpr int kIdleSeconds = 5;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  int threads_ = 0;
  int idle_ = 0;
};

}  // namespace node_rdma
