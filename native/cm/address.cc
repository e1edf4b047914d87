#include "cm/address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <cstring>

namespace node_rdma {

bool ParseAddress(const std::string& text, uint16_t port, sockaddr_storage* address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(text.c_str(), nullptr, &hints, &list) != 0) return false;
  *address = {};
  std::memcpy(address, list->ai_addr, list->ai_addrlen);
  freeaddrinfo(list);
  if (address->ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  }
  return true;
}

socklen_t AddressLength(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

TextAddress FormatAddress(const sockaddr* address) {
  TextAddress result;
  if (address == nullptr) return result;
  socklen_t length;
  if (address->sa_family == AF_INET) {
    length = sizeof(sockaddr_in);
    result.family = 4;
    result.port = ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  } else if (address->sa_family == AF_INET6) {
    length = sizeof(sockaddr_in6);
    result.family = 6;
    result.port = ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  } else {
    return result;
  }
  char host[NI_MAXHOST];
  if (getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0) result.address = host;
  return result;
}

}  // namespace node_rdma
