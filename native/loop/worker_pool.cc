#include "loop/worker_pool.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace node_rdma {

namespace {
std::atomic<bool> exiting;
}

WorkerPool& WorkerPool::Shared() {
  // Never destroyed: a thread may sit in the kernel while the process exits. One that comes back then must
  // not touch libraries whose destructors have run.
  static WorkerPool* pool = [] {
    std::atexit([] { exiting = true; });
    return new WorkerPool;
  }();
  return *pool;
}

void WorkerPool::Run(std::function<void()> job) {
  std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  if (idle_ < static_cast<int>(jobs_.size()) && threads_ < kMaxThreads) {
    threads_++;
    std::thread([this] { Serve(); }).detach();
  } else {
    wake_.notify_one();
  }
}

void WorkerPool::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (jobs_.empty()) {
      idle_++;
      const bool woken =
          wake_.wait_for(lock, std::chrono::seconds(kIdleSeconds), [this] { return !jobs_.empty(); });
      idle_--;
      if (!woken) break;
    }
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    while (exiting) pause();
    job = nullptr;
    lock.lock();
  }
  threads_--;
}

}  // namespace node_rdma
