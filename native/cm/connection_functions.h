#pragma once

#include <napi.h>

namespace node_rdma {

// The functions of a cm_id that make, answer and end a connection or a membership of a multicast group.
void ExportConnectionFunctions(Napi::Object exports);

}  // namespace node_rdma
