#include "memory/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace node_rdma {

namespace {

constexpr size_t kHugePage = 2u << 20;

size_t RoundUp(size_t length, size_t page) { return (length + page - 1) / page * page; }

}  // namespace

std::shared_ptr<Mapping> Mapping::Make(size_t length, bool huge_pages) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (huge_pages) {
    const size_t size = RoundUp(length, kHugePage);
    void* data = mmap(nullptr, size, kProtection, kFlags | MAP_HUGETLB, -1, 0);
    if (data != MAP_FAILED) return std::make_shared<Mapping>(data, size);
  }
  const size_t size = RoundUp(length, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  void* data = mmap(nullptr, size, kProtection, kFlags, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  if (huge_pages) madvise(data, size, MADV_HUGEPAGE);
  return std::make_shared<Mapping>(data, size);
}

Mapping::~Mapping() { munmap(data_, size_); }

}  // namespace node_rdma
