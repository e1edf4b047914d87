#pragma once

#include <memory>

#include "environment.h"
#include "support/object.h"
#include "verbs/context_registry.h"

namespace node_rdma {

// One environment's view of an opened device.
class Device : public Object {
 public:
  static constexpr Kind kKind = Kind::kDevice;

  Device(Environment* environment, std::shared_ptr<Context> context);
  void Close() override;

  const std::shared_ptr<Context>& context() const { return context_; }

  // Makes a Device for a context and gives it a handle.
  static uint32_t Make(Environment* environment, std::shared_ptr<Context> context);

  static void DeliverEvent(Environment* environment, uint32_t type, uint32_t device, uint32_t object,
                           uint32_t port);
  static void DeliverToDevices(Environment* environment, const Context* context, uint32_t type,
                               uint32_t port);

  static void Export(Napi::Object exports);
  static void ExportQueries(Napi::Object exports);

 private:
  Environment* const environment_;
  const std::shared_ptr<Context> context_;
};

}  // namespace node_rdma
