#pragma once

#include <uv.h>

#include <functional>
#include <mutex>
#include <vector>

namespace node_rdma {

// Brings letters from other threads to the thread of one environment. It may outlive the environment: then
// letters are dropped, with whatever they own, on the thread that posts them.
class Mailbox {
 public:
  using Letter = std::function<void()>;

  // On the environment's thread. `deliver` runs there for each batch of letters.
  void Open(uv_loop_t* loop, std::function<void(std::vector<Letter>)> deliver);
  // No letter is delivered from here on; `closed` runs when the loop has let go of the handle.
  void Close(std::function<void()> closed);

  // From any thread.
  void Post(Letter letter);

  // While held, waiting for letters keeps the loop alive. On the environment's thread.
  void Hold();
  void Release();

 private:
  std::mutex mutex_;
  std::vector<Letter> letters_;
  uv_async_t* async_ = nullptr;
  std::function<void(std::vector<Letter>)> deliver_;
  std::function<void()> closed_;
  int holds_ = 0;
};

}  // namespace node_rdma
