#pragma once

#include <uv.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "ring/records.h"

namespace node_rdma {

class CompletionQueue;
class Environment;

// The completion ring of one environment and the turns in which completions reach JavaScript: one call per
// batch, read in place. A throw loses nothing: what was not consumed is delivered again in the next turn.
class CompletionDelivery {
 public:
  static constexpr uint32_t kBatch = 64;

  explicit CompletionDelivery(Environment* environment);
  ~CompletionDelivery();

  void* data() const { return records_; }
  static constexpr size_t size() { return kBatch * sizeof(WorkCompletion); }

  void Start();
  void Stop();

  // Polls a queue once and delivers. The count taken from the queue; -1 when the batch buffer is being read,
  // or a handler threw (`nested`: with the exception pending).
  int PollAndDeliver(CompletionQueue* cq, uint32_t limit, bool nested);
  bool busy() const;

  // Queues that may have completions: polls, spins for adaptive ones, and arms those that sleep.
  void Serve(std::vector<std::shared_ptr<CompletionQueue>> ready);
  // A queue to be polled in every turn, or no longer.
  void SetPolled(const std::shared_ptr<CompletionQueue>& cq, bool polled);
  void Forget(CompletionQueue* cq);

  // A completion that no device made: it is delivered in the next turn, in order.
  void AddFailed(uint32_t cq, const WorkRequest& request, int error);
  void Add(uint32_t cq, const WorkCompletion& completion);
  // Takes everything from a queue, to be delivered in the same way.
  void Collect(CompletionQueue* cq);
  // Runs `action` as soon as what is to be delivered by now has been.
  void Then(std::function<void()> action);
  // Delivers at most `limit` of what was made for a queue, while JavaScript is on the stack; their count, -1
  // when a handler threw.
  int DeliverMadeFor(uint32_t cq, uint32_t limit);

 private:
  // A completion, or an action between completions.
  struct Made {
    uint32_t cq;
    WorkCompletion completion;
    std::function<void()> action;
  };

  void ScheduleTurn();
  void Turn();
  bool DeliverMade();
  bool Deliver(uint32_t cq, uint32_t count, bool nested);
  void UpdateAlive();

  Environment* const environment_;
  WorkCompletion* records_;
  uv_idle_t* idle_ = nullptr;
  bool active_ = false;
  std::deque<Made> made_;
  std::vector<std::shared_ptr<CompletionQueue>> polled_;
  // Had more than a turn's share: they go on in the next turn.
  std::vector<std::shared_ptr<CompletionQueue>> backlog_;
};

}  // namespace node_rdma
