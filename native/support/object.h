#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace node_rdma {

// In the order in which an environment lets go of what is left at its end.
enum class Kind : uint8_t {
  kQueuePair,
  kSharedReceiveQueue,
  kAddressHandle,
  kMemoryWindow,
  kCompletionQueue,
  kCompletionChannel,
  kMemoryRegion,
  kProtectionDomain,
  kCmId,
  kEventChannel,
  kDevice,
};

inline constexpr size_t kKindCount = 11;

// One C object. Its destructor frees the C object and may run on any thread, so it touches neither the
// environment nor the loop; what belongs to the loop ends in Close(), on the environment's thread.
class Object {
 public:
  explicit Object(Kind kind);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Ends watching and everything else that belongs to the loop. Idempotent.
  virtual void Close() { closing_ = true; }

  Kind kind() const { return kind_; }
  // The object still exists, but JavaScript has closed it.
  bool closing() const { return closing_; }
  uint32_t handle() const { return handle_; }
  void set_handle(uint32_t handle) { handle_ = handle; }

  // Live objects of this process.
  static std::array<int, kKindCount> Counts();
  static const char* NameOf(Kind kind);

 protected:
  bool closing_ = false;

 private:
  const Kind kind_;
  uint32_t handle_ = 0;
};

}  // namespace node_rdma
