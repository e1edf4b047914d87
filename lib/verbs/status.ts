/** Names of `ibv_wc_status` by number: `ibv_poll_cq(3)`. */
const statusNames = [
  'SUCCESS',
  'LOC_LEN_ERR',
  'LOC_QP_OP_ERR',
  'LOC_EEC_OP_ERR',
  'LOC_PROT_ERR',
  'WR_FLUSH_ERR',
  'MW_BIND_ERR',
  'BAD_RESP_ERR',
  'LOC_ACCESS_ERR',
  'REM_INV_REQ_ERR',
  'REM_ACCESS_ERR',
  'REM_OP_ERR',
  'RETRY_EXC_ERR',
  'RNR_RETRY_EXC_ERR',
  'LOC_RDD_VIOL_ERR',
  'REM_INV_RD_REQ_ERR',
  'REM_ABORT_ERR',
  'INV_EECN_ERR',
  'INV_EEC_STATE_ERR',
  'FATAL_ERR',
  'RESP_TIMEOUT_ERR',
  'GENERAL_ERR',
  'TM_ERR',
  'TM_RNDV_INCOMPLETE',
] as const;

/** Status of a work request that was refused before it reached the device; `vendorError` is then an errno. */
export const postFailed = 0xf0;

/** `ibv_wc_status` by name; `POST_FAILED` never reached the device. */
export type CompletionStatus = (typeof statusNames)[number] | 'POST_FAILED' | 'UNKNOWN';

export function statusName(status: number): CompletionStatus {
  return status === postFailed ? 'POST_FAILED' : (statusNames[status] ?? 'UNKNOWN');
}

/** The number of a status, undefined for a name that is none. */
export function statusOf(name: string): number | undefined {
  const number = (statusNames as readonly string[]).indexOf(name);
  return number < 0 ? undefined : number;
}
