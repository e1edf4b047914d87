#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "loop/mailbox.h"

namespace node_rdma {

class Environment;

// One opened device of this process. librdmacm has one context per device and process, so environments share
// it.
class Context {
 public:
  Context(ibv_context* verbs, bool owned);
  ~Context();

  // What must be done before anything else is made on the context; 0 or an errno.
  int Prepare();

  ibv_context* verbs() const { return verbs_; }
  const std::string& driver() const { return driver_; }
  bool siw() const { return driver_ == "siw"; }
  bool iwarp() const { return verbs_->device->transport_type == IBV_TRANSPORT_IWARP; }
  const ibv_device_attr& attributes() const { return attributes_; }

 private:
  ibv_context* const verbs_;
  const bool owned_;
  std::string driver_;
  ibv_device_attr attributes_{};
  ibv_cq* placeholder_ = nullptr;
};

// The kernel driver behind a device, as far as sysfs says.
std::string DriverOf(ibv_device* device);

// The opened devices of this process, and the way of their asynchronous events to the environment that owns
// the object concerned. Locked: every environment's thread comes here.
class ContextRegistry {
 public:
  static ContextRegistry& Shared();

  // librdmacm's context where it has one, so that cm_ids fit; else one of our own. Null with an errno in
  // `error`.
  std::shared_ptr<Context> Open(const std::string& name, int* error);
  // The context of a cm_id.
  std::shared_ptr<Context> Of(ibv_context* verbs, int* error);

  // The environment wants the events of the device as a whole.
  void Join(Environment* environment, const std::shared_ptr<Context>& context);
  void Leave(Environment* environment);

  // Events of this C object (a queue pair, a completion queue) go to its environment.
  void Route(const void* object, Environment* environment, uint32_t handle);
  // Before the object is destroyed.
  void Unroute(const void* object);

  // Reads what the context's descriptor has and sends it on. Any thread may be the one that reads an event.
  void ReadEvents(const std::shared_ptr<Context>& context);

 private:
  struct Destination {
    Environment* environment;
    std::shared_ptr<Mailbox> mailbox;
    uint32_t handle;
  };

  std::shared_ptr<Context> Adopt(ibv_context* verbs, bool owned, int* error);
  void Dispatch(const std::shared_ptr<Context>& context, const ibv_async_event& event);

  std::mutex mutex_;
  std::map<ibv_context*, std::weak_ptr<Context>> owned_;
  // librdmacm's contexts live as long as the process does.
  std::map<ibv_context*, std::shared_ptr<Context>> shared_;
  std::unordered_map<const void*, Destination> routes_;
  std::multimap<const Context*, Destination> members_;
};

}  // namespace node_rdma
