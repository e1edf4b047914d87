#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace node_rdma {

// The part of PMIx's binary interface that a rank of a job needs, as the PMIx standard (4.1, chapter 3) lays
// it out: the same from libpmix.so.2 of PMIx 3 to that of PMIx 5. Neither its headers nor its library are
// needed to build this addon, or to load it.
struct PmixProcess {
  char name_space[256];
  uint32_t rank;
};

struct PmixValue {
  uint16_t type;
  union {
    bool flag;
    char* string;
    uint16_t uint16;
    uint32_t uint32;
    int integer;
    struct {
      char* bytes;
      size_t size;
    } object;
    unsigned char room[24];
  };
};
static_assert(sizeof(PmixValue) == 32);

struct PmixInfo {
  char key[512];
  uint32_t flags;
  PmixValue value;
};
static_assert(sizeof(PmixInfo) == 552);

inline constexpr uint32_t kPmixRankWildcard = UINT32_MAX - 1;
inline constexpr size_t kPmixMaxKeyLength = 511;

enum PmixType : uint16_t {
  kPmixBool = 1,
  kPmixString = 3,
  kPmixInt = 6,
  kPmixUint16 = 13,
  kPmixUint32 = 14,
  kPmixByteObject = 27,
  kPmixProcRank = 40,
};

// What PMIx has of a key.
struct PmixDatum {
  uint16_t type = 0;
  uint32_t number = 0;
  std::vector<uint8_t> bytes;
};

// libpmix, looked up at run time; one process is one rank. Each call returns a pmix_status_t, may block, and
// may be made on any thread.
class PmixLibrary {
 public:
  static PmixLibrary& Shared();

  // Empty, or why the library can't be used.
  std::string Load(const std::string& path);

  int Initialize(PmixProcess* self);
  int Put(const std::string& key, const std::vector<uint8_t>& bytes);
  // `timeout` in seconds; 0 waits for ever. A process that has published something, but not this, is not
  // waited for: NOT-FOUND.
  int Get(uint32_t rank, const std::string& key, int timeout, bool refresh, PmixDatum* datum);
  int Fence(int timeout);
  int Abort(int status, const std::string& message);
  int Finalize();
  std::string Describe(int status);

 private:
  bool initialized();

  std::mutex mutex_;
  void* library_ = nullptr;
  std::string loaded_;
  bool initialized_ = false;
  PmixProcess self_{};
  struct {
    int (*init)(PmixProcess*, PmixInfo*, size_t);
    int (*finalize)(const PmixInfo*, size_t);
    int (*abort)(int, const char*, PmixProcess*, size_t);
    int (*put)(uint8_t, const char*, PmixValue*);
    int (*commit)();
    int (*fence)(const PmixProcess*, size_t, const PmixInfo*, size_t);
    int (*get)(const PmixProcess*, const char*, const PmixInfo*, size_t, PmixValue**);
    const char* (*error_string)(int);
  } call_{};
};

}  // namespace node_rdma
