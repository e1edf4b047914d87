#include "verbs/shared_receive_queue.h"

#include <cerrno>

#include "environment.h"
#include "verbs/completion_fields.h"

namespace node_rdma {

namespace {

// Queue pairs complete in an order of their own, so the oldest request can be outstanding while many newer
// ones have come and gone.
constexpr uint32_t kPositionsPerRequest = 4;

}  // namespace

SharedReceiveQueue::SharedReceiveQueue(Environment* environment, std::shared_ptr<ProtectionDomain> pd,
                                       ibv_srq* srq, const ibv_srq_attr& attributes)
    : Object(kKind),
      environment_(environment),
      pd_(std::move(pd)),
      srq_(srq),
      max_requests_(attributes.max_wr),
      max_sge_(attributes.max_sge),
      receives_(attributes.max_wr * kPositionsPerRequest, attributes.max_sge) {}

SharedReceiveQueue::~SharedReceiveQueue() { DestroyVerbs(); }

void SharedReceiveQueue::DestroyVerbs() {
  if (srq_ == nullptr) return;
  ContextRegistry::Shared().Unroute(srq_);
  ibv_destroy_srq(std::exchange(srq_, nullptr));
}

void SharedReceiveQueue::Destroy(std::function<void()> then) {
  Close();
  auto destroyed = [self = shared_from_this(), then = std::move(then)](int) mutable {
    // Only now: until the device has let go of the queue it may write to the memory of its requests.
    self->SettleAll();
    self->environment_->handles().Remove(self->handle());
    self->environment_->completions().Then(std::move(then));
  };
  environment_->RunInPool(
      [self = shared_from_this()] {
        self->DestroyVerbs();
        return 0;
      },
      std::move(destroyed));
}

void SharedReceiveQueue::Refuse(uint32_t count, int error) {
  receives_.PopNewest(count, [this, error](const WorkQueue::Entry& entry) {
    environment_->completions().Add(0,
                                    CompletionOf(entry, handle(), kPostFailed, static_cast<uint32_t>(error)));
  });
}

bool SharedReceiveQueue::Complete(const ibv_wc& completion, WorkCompletion* out) {
  const uint32_t position = static_cast<uint32_t>(completion.wr_id) & WorkQueue::kPositionMask;
  const WorkQueue::Entry* entry = receives_.At(position);
  if (entry == nullptr) return false;
  const auto member = members_.find(completion.qp_num);
  const Member taker = member == members_.end() ? Member{} : member->second;
  FillCompletion(completion, *entry, taker.queue_pair, taker.datagrams, out);
  receives_.Retire(position, completion.status == IBV_WC_SUCCESS);
  return true;
}

void SharedReceiveQueue::SettleAll() {
  receives_.Clear([this](const WorkQueue::Entry& entry) {
    environment_->completions().Add(0, CompletionOf(entry, handle(), IBV_WC_WR_FLUSH_ERR, 0));
  });
}

}  // namespace node_rdma
