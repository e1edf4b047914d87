#include "cm/connection_attributes.h"

#include "verbs/address_vector.h"

namespace node_rdma {

Napi::Object QueuePairAttributes(Napi::Env env, const ibv_qp_attr& attributes, int mask) {
  Napi::Object result = Napi::Object::New(env);
  const auto set = [&](int bit, const char* name, uint32_t value) {
    if ((mask & bit) != 0) result.Set(name, value);
  };
  set(IBV_QP_STATE, "state", attributes.qp_state);
  set(IBV_QP_PATH_MTU, "pathMtu", attributes.path_mtu);
  set(IBV_QP_QKEY, "qkey", attributes.qkey);
  set(IBV_QP_RQ_PSN, "rqPsn", attributes.rq_psn);
  set(IBV_QP_SQ_PSN, "sqPsn", attributes.sq_psn);
  set(IBV_QP_DEST_QPN, "destQpNumber", attributes.dest_qp_num);
  set(IBV_QP_ACCESS_FLAGS, "accessFlags", attributes.qp_access_flags);
  set(IBV_QP_PKEY_INDEX, "pkeyIndex", attributes.pkey_index);
  set(IBV_QP_PORT, "portNumber", attributes.port_num);
  set(IBV_QP_MIN_RNR_TIMER, "minRnrTimer", attributes.min_rnr_timer);
  set(IBV_QP_MAX_QP_RD_ATOMIC, "maxRdAtomic", attributes.max_rd_atomic);
  set(IBV_QP_MAX_DEST_RD_ATOMIC, "maxDestRdAtomic", attributes.max_dest_rd_atomic);
  set(IBV_QP_TIMEOUT, "timeout", attributes.timeout);
  set(IBV_QP_RETRY_CNT, "retryCount", attributes.retry_cnt);
  set(IBV_QP_RNR_RETRY, "rnrRetry", attributes.rnr_retry);
  if ((mask & IBV_QP_AV) != 0) {
    result.Set("addressHandle", DescribeAddressVector(env, attributes.ah_attr));
  }
  return result;
}

}  // namespace node_rdma
