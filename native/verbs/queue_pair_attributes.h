#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

namespace node_rdma {

// Of ibv_qp_attr what `mask` names, as modifyQueuePair takes it.
Napi::Object DescribeQueuePairAttributes(Napi::Env env, const ibv_qp_attr& attributes, int mask);

// ibv_modify_qp and ibv_query_qp.
void ExportQueuePairAttributes(Napi::Object exports);

}  // namespace node_rdma
