#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace node_rdma {

// Numeric IPv4, IPv6 and IPv6 with scope to a socket address and back.
bool ParseAddress(const std::string& text, uint16_t port, sockaddr_storage* address);

socklen_t AddressLength(const sockaddr_storage& address);

struct TextAddress {
  std::string address;
  uint16_t port = 0;
  // 4, 6, or 0 where there is no IP address.
  int family = 0;
};

TextAddress FormatAddress(const sockaddr* address);

}  // namespace node_rdma
