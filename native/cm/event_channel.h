#pragma once

#include <napi.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <vector>

#include "loop/watcher.h"
#include "support/object.h"

namespace node_rdma {

class Environment;

class EventChannel : public Object, public std::enable_shared_from_this<EventChannel> {
 public:
  static constexpr Kind kKind = Kind::kEventChannel;

  EventChannel(Environment* environment, rdma_event_channel* channel);
  ~EventChannel() override;
  void Close() override;

  // 0 or a negative errno.
  int Watch();
  void SetAlive(bool alive) { watcher_.SetAlive(alive); }
  rdma_event_channel* channel() const { return channel_; }

  static void Export(Napi::Object exports);

 private:
  // A copy of an event, so that the event is acknowledged before JavaScript runs.
  struct Event {
    rdma_cm_event_type type;
    // The new id of a connection request, which nobody else knows yet.
    rdma_cm_id* request;
    uint32_t id;
    uint32_t listener;
    int status;
    rdma_conn_param parameters;
    // Of an event that says how a datagram reaches the peer, or a multicast group.
    std::optional<rdma_ud_param> datagram;
    // The number that a multicast group was joined with; 0 for other events.
    uint32_t group;
    std::vector<uint8_t> private_data;
  };

  static Event Copy(const rdma_cm_event& raw);
  void OnReadable();
  // The id that JavaScript is to hear of; 0 when nobody is there for the event.
  uint32_t Apply(const Event& event);
  void Emit(const Event& event, uint32_t id);

  Environment* const environment_;
  rdma_event_channel* const channel_;
  Watcher watcher_;
};

}  // namespace node_rdma
