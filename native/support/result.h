#pragma once

#include <napi.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace node_rdma {

// The errno of a C call of either library: it returns 0, or -1 and sets errno, or an errno of either sign
// (siw's provider with a stale errno).
inline int ErrnoOf(int result) { return result == -1 ? errno : std::abs(result); }

using NamedNumber = std::pair<const char*, double>;

template <size_t N>
void SetNumbers(Napi::Object object, const NamedNumber (&numbers)[N]) {
  for (const auto& [name, value] : numbers) object.Set(name, value);
}

}  // namespace node_rdma
