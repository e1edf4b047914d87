#pragma once

#include <napi.h>

#include <atomic>
#include <memory>

#include "support/object.h"
#include "verbs/context_registry.h"

namespace node_rdma {

class ProtectionDomain : public Object {
 public:
  static constexpr Kind kKind = Kind::kProtectionDomain;

  ProtectionDomain(std::shared_ptr<Context> context, ibv_pd* pd);
  ~ProtectionDomain() override;

  ibv_pd* pd() const { return pd_; }
  const std::shared_ptr<Context>& context() const { return context_; }
  // Regions and queue pairs that live in the domain; they are destroyed on other threads.
  std::atomic<int>& users() { return users_; }

  static void Export(Napi::Object exports);

 private:
  const std::shared_ptr<Context> context_;
  ibv_pd* const pd_;
  std::atomic<int> users_ = 0;
};

// Counts as a user of a domain, or of another parent, for as long as it lives.
template <typename Parent>
class Membership {
 public:
  explicit Membership(std::shared_ptr<Parent> parent) : parent_(std::move(parent)) { parent_->users()++; }
  ~Membership() { parent_->users()--; }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Parent* get() const { return parent_.get(); }
  Parent* operator->() const { return parent_.get(); }

 private:
  const std::shared_ptr<Parent> parent_;
};

}  // namespace node_rdma
