#pragma once

#include <uv.h>

#include <functional>

namespace node_rdma {

class Environment;

// Watches a non-blocking descriptor for input, on the loop of one environment.
class Watcher {
 public:
  // 0 or a negative errno.
  int Start(Environment* environment, int descriptor, std::function<void()> readable);
  // Idempotent. The descriptor may be closed as soon as this returns.
  void Stop();
  void SetAlive(bool alive);
  ~Watcher();

 private:
  uv_poll_t* poll_ = nullptr;
  Environment* environment_ = nullptr;
  std::function<void()> readable_;
};

// Sets O_NONBLOCK; 0 or a negative errno.
int SetNonBlocking(int descriptor);

}  // namespace node_rdma
