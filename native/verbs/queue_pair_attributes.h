#pragma once

#include <napi.h>

namespace node_rdma {

// ibv_modify_qp and ibv_query_qp.
void ExportQueuePairAttributes(Napi::Object exports);

}  // namespace node_rdma
