#include "loop/watcher.h"

#include <fcntl.h>

#include <cassert>
#include <cerrno>
#include <utility>

#include "environment.h"

namespace node_rdma {

int Watcher::Start(Environment* environment, int descriptor, std::function<void()> readable) {
  environment_ = environment;
  readable_ = std::move(readable);
  poll_ = new uv_poll_t;
  int error = uv_poll_init(environment->loop(), poll_, descriptor);
  if (error != 0) {
    delete poll_;
    poll_ = nullptr;
    return error;
  }
  poll_->data = this;
  environment_->OpenedHandle();
  // UV_DISCONNECT is not asked for: libuv reports an error on the descriptor as readable.
  error = uv_poll_start(poll_, UV_READABLE,
                        [](uv_poll_t* poll, int, int) { static_cast<Watcher*>(poll->data)->readable_(); });
  if (error != 0) Stop();
  return error;
}

void Watcher::Stop() {
  if (poll_ == nullptr) return;
  uv_poll_t* poll = std::exchange(poll_, nullptr);
  poll->data = environment_;
  uv_poll_stop(poll);
  uv_close(reinterpret_cast<uv_handle_t*>(poll), [](uv_handle_t* handle) {
    auto* environment = static_cast<Environment*>(handle->data);
    delete reinterpret_cast<uv_poll_t*>(handle);
    environment->ClosedHandle();
  });
}

void Watcher::SetAlive(bool alive) {
  if (poll_ == nullptr) return;
  auto* handle = reinterpret_cast<uv_handle_t*>(poll_);
  if (alive) {
    uv_ref(handle);
  } else {
    uv_unref(handle);
  }
}

Watcher::~Watcher() { assert(poll_ == nullptr); }

int SetNonBlocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
  return 0;
}

}  // namespace node_rdma
