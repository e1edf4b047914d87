#pragma once

#include <napi.h>

namespace node_rdma {

void ExportPmix(Napi::Object exports);

}  // namespace node_rdma
