#pragma once

#include <infiniband/verbs.h>

#include "support/arguments.h"

namespace node_rdma {

// ibv_ah_attr, as address handles and queue pairs have it.
void ReadAddressVector(Arguments& arguments, Napi::Object object, ibv_ah_attr* attributes);
Napi::Object DescribeAddressVector(Napi::Env env, const ibv_ah_attr& attributes);

Napi::Uint8Array GidBytes(Napi::Env env, const ibv_gid& gid);

}  // namespace node_rdma
