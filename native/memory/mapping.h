#pragma once

#include <cstddef>
#include <memory>

namespace node_rdma {

// Pages that are ours alone. They stay until both the region and the ArrayBuffer that shows them are gone.
class Mapping {
 public:
  // Null with errno set. Huge pages are a wish.
  static std::shared_ptr<Mapping> Make(size_t length, bool huge_pages);

  Mapping(void* data, size_t size) : data_(data), size_(size) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* data() const { return data_; }

 private:
  void* const data_;
  const size_t size_;
};

}  // namespace node_rdma
