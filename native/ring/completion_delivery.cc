#include "ring/completion_delivery.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "environment.h"
#include "verbs/completion_queue.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

// The most that completions may take of one turn of the loop before timers and other descriptors have theirs.
constexpr uint64_t kTurnNanoseconds = 2'000'000;

inline void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

CompletionDelivery::CompletionDelivery(Environment* environment)
    : environment_(environment), records_(static_cast<WorkCompletion*>(std::aligned_alloc(4096, size()))) {
  std::memset(records_, 0, size());
}

CompletionDelivery::~CompletionDelivery() { std::free(records_); }

void CompletionDelivery::Start() {
  idle_ = new uv_idle_t;
  uv_idle_init(environment_->loop(), idle_);
  idle_->data = this;
  environment_->OpenedHandle();
}

void CompletionDelivery::Stop() {
  if (idle_ == nullptr) return;
  uv_idle_t* idle = std::exchange(idle_, nullptr);
  idle->data = environment_;
  uv_idle_stop(idle);
  uv_close(reinterpret_cast<uv_handle_t*>(idle), [](uv_handle_t* handle) {
    auto* environment = static_cast<Environment*>(handle->data);
    delete reinterpret_cast<uv_idle_t*>(handle);
    environment->ClosedHandle();
  });
  polled_.clear();
  backlog_.clear();
  made_.clear();
}

bool CompletionDelivery::busy() const { return environment_->control().completions_in_use != 0; }

int CompletionDelivery::PollAndDeliver(CompletionQueue* cq, uint32_t limit, bool nested) {
  if (busy()) return -1;
  uint32_t delivered = 0;
  const int taken = cq->Take(records_, std::min(limit, kBatch), &delivered);
  if (taken <= 0) return taken;
  if (delivered > 0 && !Deliver(cq->handle(), delivered, nested)) return -1;
  return taken;
}

bool CompletionDelivery::Deliver(uint32_t cq, uint32_t count, bool nested) {
  environment_->control().completions_consumed = 0;
  napi_env env = environment_->env();
  napi_handle_scope scope;
  napi_open_handle_scope(env, &scope);
  napi_value arguments[3];
  napi_create_uint32(env, cq, &arguments[0]);
  napi_create_uint32(env, 0, &arguments[1]);
  napi_create_uint32(env, count, &arguments[2]);
  const bool ok = nested ? environment_->CallNested(Environment::Hook::kCompletions, 3, arguments)
                         : environment_->Call(Environment::Hook::kCompletions, 3, arguments);
  napi_close_handle_scope(env, scope);
  // Whatever threw after the last handler had returned, a tick for example, the batch has been delivered.
  if (ok || !busy()) return true;
  environment_->control().completions_in_use = 0;
  // The handler of the last one consumed threw. The rest comes again, before anything newer.
  const uint32_t consumed = std::min(environment_->control().completions_consumed, count);
  for (uint32_t i = count; i > consumed; i--) made_.push_front({cq, records_[i - 1], nullptr});
  if (!made_.empty()) ScheduleTurn();
  return false;
}

void CompletionDelivery::Serve(std::vector<std::shared_ptr<CompletionQueue>> ready) {
  const uint64_t start = uv_hrtime();
  uint64_t last = start;
  uint64_t spin = 0;
  for (const auto& cq : ready) spin = std::max(spin, cq->SpinNanoseconds());
  for (;;) {
    int taken = 0;
    for (const auto& cq : ready) {
      if (cq->closing()) continue;
      // Older completions that were made or left over go first.
      if (!made_.empty() && !DeliverMade()) break;
      const int count = PollAndDeliver(cq.get(), kBatch, false);
      if (count > 0) {
        taken += count;
        cq->Observe(uv_hrtime());
      }
      if (environment_->ending()) return;
    }
    const uint64_t now = uv_hrtime();
    if (taken > 0) {
      last = now;
      spin = 0;
      for (const auto& cq : ready) spin = std::max(spin, cq->SpinNanoseconds());
    } else if (now - last >= spin) {
      break;
    } else {
      Relax();
    }
    if (now - start >= kTurnNanoseconds) {
      for (auto& cq : ready) backlog_.push_back(std::move(cq));
      ScheduleTurn();
      return;
    }
  }
  for (auto& cq : ready) {
    if (cq->closing() || !cq->Sleeps()) continue;
    cq->Arm();
    // What came before the queue was armed raises no event.
    if (PollAndDeliver(cq.get(), kBatch, false) > 0) {
      backlog_.push_back(std::move(cq));
      ScheduleTurn();
    }
    if (environment_->ending()) return;
  }
}

void CompletionDelivery::SetPolled(const std::shared_ptr<CompletionQueue>& cq, bool polled) {
  std::erase(polled_, cq);
  if (polled) {
    polled_.push_back(cq);
    ScheduleTurn();
  }
  UpdateAlive();
}

void CompletionDelivery::Forget(CompletionQueue* cq) {
  const auto same = [cq](const auto& other) { return other.get() == cq; };
  std::erase_if(polled_, same);
  std::erase_if(backlog_, same);
  UpdateAlive();
}

void CompletionDelivery::AddFailed(uint32_t cq, const WorkRequest& request, int error) {
  WorkCompletion completion{};
  completion.slot = request.slot;
  completion.generation = request.generation;
  completion.status = kPostFailed;
  completion.opcode = request.opcode;
  completion.queue_pair = request.queue_pair;
  completion.vendor_error = static_cast<uint32_t>(error);
  Add(cq, completion);
}

void CompletionDelivery::Add(uint32_t cq, const WorkCompletion& completion) {
  made_.push_back({cq, completion, nullptr});
  ScheduleTurn();
}

void CompletionDelivery::Collect(CompletionQueue* cq) {
  WorkCompletion batch[kBatch];
  uint32_t count = 0;
  while (cq->Take(batch, kBatch, &count) > 0) {
    for (uint32_t i = 0; i < count; i++) Add(cq->handle(), batch[i]);
  }
}

void CompletionDelivery::Then(std::function<void()> action) {
  if (made_.empty()) {
    action();
    return;
  }
  made_.push_back({0, {}, std::move(action)});
  ScheduleTurn();
}

int CompletionDelivery::DeliverMadeFor(uint32_t cq, uint32_t limit) {
  uint32_t count = 0;
  for (auto made = made_.begin(); made != made_.end() && count < std::min(limit, kBatch);) {
    if (made->action || made->cq != cq) {
      made++;
      continue;
    }
    records_[count++] = made->completion;
    made = made_.erase(made);
  }
  return count == 0 || Deliver(cq, count, true) ? static_cast<int>(count) : -1;
}

bool CompletionDelivery::DeliverMade() {
  while (!made_.empty()) {
    if (busy()) return false;
    if (made_.front().action) {
      Mailbox::Letter action = std::move(made_.front().action);
      made_.pop_front();
      environment_->Deliver({std::move(action)});
      if (environment_->ending()) return false;
      continue;
    }
    const uint32_t cq = made_.front().cq;
    uint32_t count = 0;
    while (!made_.empty() && !made_.front().action && made_.front().cq == cq && count < kBatch) {
      records_[count++] = made_.front().completion;
      made_.pop_front();
    }
    if (!Deliver(cq, count, false)) return false;
    if (environment_->ending()) return false;
  }
  return true;
}

void CompletionDelivery::ScheduleTurn() {
  if (idle_ == nullptr) return;
  if (!active_) {
    active_ = true;
    uv_idle_start(idle_, [](uv_idle_t* idle) { static_cast<CompletionDelivery*>(idle->data)->Turn(); });
  }
  UpdateAlive();
}

void CompletionDelivery::UpdateAlive() {
  if (idle_ == nullptr) return;
  bool alive = !made_.empty() || !backlog_.empty();
  for (const auto& cq : polled_) alive = alive || cq->alive();
  auto* handle = reinterpret_cast<uv_handle_t*>(idle_);
  if (alive) {
    uv_ref(handle);
  } else {
    uv_unref(handle);
  }
}

void CompletionDelivery::Turn() {
  DeliverMade();
  std::vector<std::shared_ptr<CompletionQueue>> ready = std::exchange(backlog_, {});
  for (const auto& cq : polled_) {
    if (std::find(ready.begin(), ready.end(), cq) == ready.end()) ready.push_back(cq);
  }
  if (!ready.empty() && !environment_->ending()) Serve(std::move(ready));
  if (idle_ == nullptr) return;
  if (made_.empty() && backlog_.empty() && polled_.empty()) {
    active_ = false;
    uv_idle_stop(idle_);
  }
  UpdateAlive();
}

}  // namespace node_rdma
