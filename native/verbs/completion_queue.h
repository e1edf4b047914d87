#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "ring/records.h"
#include "support/object.h"
#include "verbs/completion_channel.h"
#include "verbs/protection_domain.h"

namespace node_rdma {

class Environment;

enum class Waiting : uint32_t { kManual, kEvent, kPoll, kAdaptive };

class CompletionQueue : public Object, public std::enable_shared_from_this<CompletionQueue> {
 public:
  static constexpr Kind kKind = Kind::kCompletionQueue;

  // Null with errno set.
  static std::shared_ptr<CompletionQueue> Make(Environment* environment, std::shared_ptr<Context> context,
                                               int entries, std::shared_ptr<CompletionChannel> channel,
                                               uint32_t fields);

  CompletionQueue(Environment* environment, std::shared_ptr<Context> context,
                  std::shared_ptr<CompletionChannel> channel);
  ~CompletionQueue() override;
  void Close() override;

  ibv_cq* cq() const { return cq_; }
  const std::shared_ptr<Context>& context() const { return context_; }
  std::atomic<int>& users() { return users_; }

  // Polls at most `limit` completions. What JavaScript is to see goes to `out`, its count to `delivered`; the
  // count of all that were taken is returned.
  int Take(WorkCompletion* out, uint32_t limit, uint32_t* delivered);

  void SetWaiting(Waiting waiting, uint32_t spin_microseconds);
  // Whether it is armed and sleeps when it has nothing.
  bool Sleeps() const { return waiting_ == Waiting::kEvent || waiting_ == Waiting::kAdaptive; }
  void Arm();
  // How long it is worth to wait for more: as long as completions have lately kept each other waiting.
  uint64_t SpinNanoseconds() const;
  // Completions came.
  void Observe(uint64_t now);

  bool alive() const { return alive_; }
  void SetAlive(bool alive);

  // Each returns 0 or an errno.
  int Resize(int entries);
  int Moderate(uint16_t count, uint16_t period);

  static void Export(Napi::Object exports);

 private:
  // ibv_poll_cq, or what an extended queue has instead; `timestamps` stays untouched on a plain one.
  int Poll(int limit, ibv_wc* completions, uint64_t (*timestamps)[2]);

  Environment* const environment_;
  const std::shared_ptr<Context> context_;
  const std::unique_ptr<Membership<CompletionChannel>> channel_;
  ibv_cq* cq_ = nullptr;
  // The same queue where it was made with fields of its own, else null.
  ibv_cq_ex* extended_ = nullptr;
  uint32_t fields_ = 0;
  std::atomic<int> users_ = 0;
  Waiting waiting_ = Waiting::kManual;
  uint64_t spin_ = 0;
  // Moving average of the time between batches of completions, nanoseconds.
  uint64_t gap_ = 0;
  uint64_t last_ = 0;
  bool alive_ = false;
};

}  // namespace node_rdma
