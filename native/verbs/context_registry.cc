#include "verbs/context_registry.h"

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>

#include "environment.h"
#include "loop/watcher.h"
#include "verbs/device.h"

namespace node_rdma {

namespace {

// siw: the queue that the kernel maps at offset 0x90000 collides with libsiw's invalid key, and the process
// can make no more. One queue this long, made first, covers that page; 4,096 entries are too few.
constexpr int kPlaceholderEntries = 20'000;

// Vendor ids of the two software drivers: drivers/infiniband/sw/siw/siw.h and rxe/rxe_param.h.
constexpr uint32_t kSiwVendor = 0x626d74;
constexpr uint32_t kRxeVendor = 0xffffff;

// ibv_get_device_list() says ENOSYS, no RDMA in this kernel, of everything that it can't open: also when this
// process has no descriptor left (find_sysfs_devs() and find_sysfs_devs_nl() in libibverbs keep no errno).
int ListingError(int error) {
  if (error != ENOSYS) return error;
  const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  close(descriptor);
  return error;
}

}  // namespace

std::string DriverOf(ibv_device* device) {
  const std::string folder = std::string("/sys/class/infiniband/") + ibv_get_device_name(device);
  char target[PATH_MAX];
  const ssize_t length = readlink((folder + "/device/driver").c_str(), target, sizeof target - 1);
  if (length > 0) {
    target[length] = '\0';
    const char* slash = std::strrchr(target, '/');
    return slash == nullptr ? target : slash + 1;
  }
  std::string description;
  std::getline(std::ifstream(folder + "/node_desc"), description);
  if (description.rfind("Software iWARP", 0) == 0) return "siw";
  if (description.rfind("rxe", 0) == 0) return "rxe";
  return "unknown";
}

Context::Context(ibv_context* verbs, bool owned)
    : verbs_(verbs), owned_(owned), driver_(DriverOf(verbs->device)) {}

int Context::Prepare() {
  int error = ibv_query_device(verbs_, &attributes_);
  if (error != 0) return error;
  if (attributes_.vendor_id == kSiwVendor && iwarp()) driver_ = "siw";
  if (attributes_.vendor_id == kRxeVendor && !iwarp()) driver_ = "rxe";
  error = SetNonBlocking(verbs_->async_fd);
  if (error != 0) return -error;
  if (siw()) {
    placeholder_ = ibv_create_cq(verbs_, kPlaceholderEntries, nullptr, nullptr, 0);
    if (placeholder_ == nullptr) return errno;
  }
  return 0;
}

Context::~Context() {
  if (placeholder_ != nullptr) ibv_destroy_cq(placeholder_);
  if (owned_) ibv_close_device(verbs_);
}

ContextRegistry& ContextRegistry::Shared() {
  static ContextRegistry* registry = new ContextRegistry;
  return *registry;
}

std::shared_ptr<Context> ContextRegistry::Adopt(ibv_context* verbs, bool owned, int* error) {
  auto context = std::make_shared<Context>(verbs, owned);
  *error = context->Prepare();
  if (*error != 0) return nullptr;
  if (owned) {
    owned_[verbs] = context;
  } else {
    shared_[verbs] = context;
  }
  return context;
}

std::shared_ptr<Context> ContextRegistry::Of(ibv_context* verbs, int* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = shared_.find(verbs);
  if (found != shared_.end()) return found->second;
  return Adopt(verbs, false, error);
}

std::shared_ptr<Context> ContextRegistry::Open(const std::string& name, int* error) {
  int count = 0;
  if (ibv_context** list = rdma_get_devices(&count); list != nullptr) {
    ibv_context* verbs = nullptr;
    for (int i = 0; i < count; i++) {
      if (name == ibv_get_device_name(list[i]->device)) verbs = list[i];
    }
    rdma_free_devices(list);
    if (verbs != nullptr) return Of(verbs, error);
  }
  *error = ENODEV;
  ibv_device** devices = ibv_get_device_list(&count);
  if (devices == nullptr) {
    *error = ListingError(errno);
    return nullptr;
  }
  std::shared_ptr<Context> context;
  for (int i = 0; i < count; i++) {
    if (name != ibv_get_device_name(devices[i])) continue;
    ibv_context* verbs = ibv_open_device(devices[i]);
    if (verbs == nullptr) {
      *error = errno;
      break;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    *error = 0;
    context = Adopt(verbs, true, error);
    break;
  }
  ibv_free_device_list(devices);
  return context;
}

void ContextRegistry::Join(Environment* environment, const std::shared_ptr<Context>& context) {
  std::lock_guard<std::mutex> lock(mutex_);
  members_.emplace(context.get(), Destination{environment, environment->mailbox(), 0});
}

void ContextRegistry::Leave(Environment* environment) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(members_,
                [environment](const auto& member) { return member.second.environment == environment; });
  std::erase_if(routes_,
                [environment](const auto& route) { return route.second.environment == environment; });
}

void ContextRegistry::Route(const void* object, Environment* environment, uint32_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  routes_[object] = {environment, environment->mailbox(), handle};
}

void ContextRegistry::Unroute(const void* object) {
  std::lock_guard<std::mutex> lock(mutex_);
  routes_.erase(object);
}

void ContextRegistry::ReadEvents(const std::shared_ptr<Context>& context) {
  ibv_async_event event;
  while (ibv_get_async_event(context->verbs(), &event) == 0) {
    Dispatch(context, event);
    // At once: destroying the object waits for this.
    ibv_ack_async_event(&event);
  }
}

void ContextRegistry::Dispatch(const std::shared_ptr<Context>& context, const ibv_async_event& event) {
  const void* object = nullptr;
  uint32_t port = 0;
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      object = event.element.cq;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      object = event.element.qp;
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      object = event.element.srq;
      break;
    case IBV_EVENT_DEVICE_FATAL:
      break;
    default:
      port = static_cast<uint32_t>(event.element.port_num);
  }
  const auto type = static_cast<uint32_t>(event.event_type);
  std::lock_guard<std::mutex> lock(mutex_);
  if (object != nullptr) {
    const auto found = routes_.find(object);
    if (found == routes_.end()) return;
    const auto& [environment, mailbox, handle] = found->second;
    mailbox->Post([environment = environment, handle = handle, type] {
      Device::DeliverEvent(environment, type, 0, handle, 0);
    });
    return;
  }
  const auto [first, last] = members_.equal_range(context.get());
  for (auto member = first; member != last; member++) {
    member->second.mailbox->Post([environment = member->second.environment, context, type, port] {
      Device::DeliverToDevices(environment, context.get(), type, port);
    });
  }
}

}  // namespace node_rdma
