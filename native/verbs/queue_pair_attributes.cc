#include "verbs/queue_pair_attributes.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "support/arguments.h"
#include "support/result.h"
#include "verbs/address_vector.h"
#include "verbs/queue_pair.h"

namespace node_rdma {

namespace {

constexpr uint32_t kQueuePairAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

// Reads the attributes that are there; the mask follows from them.
class AttributeReader {
 public:
  AttributeReader(Arguments& arguments, Napi::Object object) : arguments_(arguments), object_(object) {}

  int mask() const { return mask_; }

  template <typename Field>
  void Read(const char* name, int bit, uint32_t max, Field* field) {
    const auto value = arguments_.OptionalU32(object_, name, max);
    if (!value.has_value()) return;
    mask_ |= bit;
    *field = static_cast<Field>(*value);
  }

  void Read(const char* name, int bit, ibv_ah_attr* field) {
    const Napi::Value value = arguments_.Property(object_, name);
    if (!arguments_.ok() || !value.IsObject()) return;
    ReadAddressVector(arguments_, value.As<Napi::Object>(), field);
    mask_ |= bit;
  }

 private:
  Arguments& arguments_;
  Napi::Object object_;
  int mask_ = 0;
};

int ReadAttributes(Arguments& arguments, Napi::Object object, ibv_qp_attr* attributes) {
  AttributeReader reader(arguments, object);
  reader.Read("state", IBV_QP_STATE, IBV_QPS_ERR, &attributes->qp_state);
  reader.Read("currentState", IBV_QP_CUR_STATE, IBV_QPS_ERR, &attributes->cur_qp_state);
  reader.Read("pathMtu", IBV_QP_PATH_MTU, IBV_MTU_4096, &attributes->path_mtu);
  reader.Read("pathMigrationState", IBV_QP_PATH_MIG_STATE, IBV_MIG_ARMED, &attributes->path_mig_state);
  reader.Read("qkey", IBV_QP_QKEY, UINT32_MAX, &attributes->qkey);
  reader.Read("rqPsn", IBV_QP_RQ_PSN, 0xffffff, &attributes->rq_psn);
  reader.Read("sqPsn", IBV_QP_SQ_PSN, 0xffffff, &attributes->sq_psn);
  reader.Read("destQpNumber", IBV_QP_DEST_QPN, 0xffffff, &attributes->dest_qp_num);
  reader.Read("accessFlags", IBV_QP_ACCESS_FLAGS, kQueuePairAccess, &attributes->qp_access_flags);
  reader.Read("pkeyIndex", IBV_QP_PKEY_INDEX, UINT16_MAX, &attributes->pkey_index);
  reader.Read("portNumber", IBV_QP_PORT, UINT8_MAX, &attributes->port_num);
  reader.Read("minRnrTimer", IBV_QP_MIN_RNR_TIMER, 31, &attributes->min_rnr_timer);
  reader.Read("maxRdAtomic", IBV_QP_MAX_QP_RD_ATOMIC, UINT8_MAX, &attributes->max_rd_atomic);
  reader.Read("maxDestRdAtomic", IBV_QP_MAX_DEST_RD_ATOMIC, UINT8_MAX, &attributes->max_dest_rd_atomic);
  reader.Read("timeout", IBV_QP_TIMEOUT, 31, &attributes->timeout);
  reader.Read("retryCount", IBV_QP_RETRY_CNT, 7, &attributes->retry_cnt);
  reader.Read("rnrRetry", IBV_QP_RNR_RETRY, 7, &attributes->rnr_retry);
  reader.Read("sqDrainedNotify", IBV_QP_EN_SQD_ASYNC_NOTIFY, 1, &attributes->en_sqd_async_notify);
  reader.Read("rateLimit", IBV_QP_RATE_LIMIT, UINT32_MAX, &attributes->rate_limit);
  reader.Read("addressHandle", IBV_QP_AV, &attributes->ah_attr);
  reader.Read("alternatePkeyIndex", IBV_QP_ALT_PATH, UINT16_MAX, &attributes->alt_pkey_index);
  reader.Read("alternatePortNumber", IBV_QP_ALT_PATH, UINT8_MAX, &attributes->alt_port_num);
  reader.Read("alternateTimeout", IBV_QP_ALT_PATH, 31, &attributes->alt_timeout);
  reader.Read("alternateAddressHandle", IBV_QP_ALT_PATH, &attributes->alt_ah_attr);
  return reader.mask();
}

Napi::Value ModifyQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_qp_attr attributes{};
  const int mask = ReadAttributes(arguments, arguments.Object(1, "attributes"), &attributes);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  const int error = ErrnoOf(ibv_modify_qp(queue_pair->qp(), &attributes, mask));
  if (error != 0) return arguments.Fail(error, "ibv_modify_qp");
  queue_pair->Modified(attributes, mask);
  return info.Env().Undefined();
}

Napi::Value QueryQueuePair(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<QueuePair> queue_pair = arguments.HandleAt<QueuePair>(0);
  if (!arguments.ok()) return info.Env().Undefined();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  constexpr int kEverything =
      IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
      IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
      IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
      IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_DEST_QPN;
  const int error = ErrnoOf(ibv_query_qp(queue_pair->qp(), &attributes, kEverything, &initial));
  if (error != 0) return arguments.Fail(error, "ibv_query_qp");
  Napi::Object result = DescribeQueuePairAttributes(info.Env(), attributes, kEverything);
  SetNumbers(result, {{"currentState", attributes.cur_qp_state},
                      {"pathMigrationState", attributes.path_mig_state},
                      {"sqDraining", attributes.sq_draining},
                      {"rateLimit", attributes.rate_limit},
                      {"alternatePkeyIndex", attributes.alt_pkey_index},
                      {"alternatePortNumber", attributes.alt_port_num},
                      {"alternateTimeout", attributes.alt_timeout},
                      {"maxSendWr", attributes.cap.max_send_wr},
                      {"maxReceiveWr", attributes.cap.max_recv_wr},
                      {"maxSendSge", attributes.cap.max_send_sge},
                      {"maxReceiveSge", attributes.cap.max_recv_sge},
                      {"maxInlineData", attributes.cap.max_inline_data}});
  result.Set("alternateAddressHandle", DescribeAddressVector(info.Env(), attributes.alt_ah_attr));
  return result;
}

}  // namespace

Napi::Object DescribeQueuePairAttributes(Napi::Env env, const ibv_qp_attr& attributes, int mask) {
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

void ExportQueuePairAttributes(Napi::Object exports) {
  ExportFunction(exports, "modifyQueuePair", ModifyQueuePair);
  ExportFunction(exports, "queryQueuePair", QueryQueuePair);
}

}  // namespace node_rdma
