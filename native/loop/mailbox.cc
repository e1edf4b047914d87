#include "loop/mailbox.h"

#include <utility>

namespace node_rdma {

void Mailbox::Open(uv_loop_t* loop, std::function<void(std::vector<Letter>)> deliver) {
  deliver_ = std::move(deliver);
  async_ = new uv_async_t;
  async_->data = this;
  uv_async_init(loop, async_, [](uv_async_t* async) {
    auto* mailbox = static_cast<Mailbox*>(async->data);
    std::vector<Letter> letters;
    {
      std::lock_guard<std::mutex> lock(mailbox->mutex_);
      letters.swap(mailbox->letters_);
    }
    if (!letters.empty()) mailbox->deliver_(std::move(letters));
  });
  uv_unref(reinterpret_cast<uv_handle_t*>(async_));
}

void Mailbox::Close(std::function<void()> closed) {
  uv_async_t* async;
  std::vector<Letter> dropped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    async = async_;
    async_ = nullptr;
    dropped.swap(letters_);
  }
  if (async == nullptr) return;
  closed_ = std::move(closed);
  uv_close(reinterpret_cast<uv_handle_t*>(async), [](uv_handle_t* handle) {
    auto* mailbox = static_cast<Mailbox*>(handle->data);
    std::function<void()> closed = std::move(mailbox->closed_);
    delete reinterpret_cast<uv_async_t*>(handle);
    closed();
  });
}

void Mailbox::Post(Letter letter) {
  // Declared before the lock: a dropped letter is destroyed after the lock is released.
  Letter dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  if (async_ == nullptr) {
    dropped = std::move(letter);
    return;
  }
  letters_.push_back(std::move(letter));
  uv_async_send(async_);
}

void Mailbox::Hold() {
  if (holds_++ == 0 && async_ != nullptr) uv_ref(reinterpret_cast<uv_handle_t*>(async_));
}

void Mailbox::Release() {
  if (--holds_ == 0 && async_ != nullptr) uv_unref(reinterpret_cast<uv_handle_t*>(async_));
}

}  // namespace node_rdma
