#pragma once

#include <napi.h>

namespace node_rdma {

// rdma_getaddrinfo(3), in the pool: it may ask name servers.
void ExportAddressInfo(Napi::Object exports);

}  // namespace node_rdma
