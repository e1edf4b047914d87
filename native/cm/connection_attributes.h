#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

namespace node_rdma {

// Of ibv_qp_attr what `mask` names, as modifyQueuePair takes it.
Napi::Object QueuePairAttributes(Napi::Env env, const ibv_qp_attr& attributes, int mask);

}  // namespace node_rdma
