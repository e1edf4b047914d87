import { errnoName } from '../errors.js';

/** Why a connection was rejected: IBTA specification, table of REJ reasons (12.6.7.2), by number. */
const rejections: readonly (string | undefined)[] = [
  undefined,
  'NO_QP',
  'NO_EEC',
  'NO_RESOURCES',
  'TIMEOUT',
  'UNSUPPORTED',
  'INVALID_COMM_ID',
  'INVALID_COMM_INSTANCE',
  'INVALID_SERVICE_ID',
  'INVALID_TRANSPORT_TYPE',
  'STALE_CONN',
  'RDC_NOT_EXIST',
  'INVALID_GID',
  'INVALID_LID',
  'INVALID_SL',
  'INVALID_TRAFFIC_CLASS',
  'INVALID_HOP_LIMIT',
  'INVALID_PACKET_RATE',
  'INVALID_ALT_GID',
  'INVALID_ALT_LID',
  'INVALID_ALT_SL',
  'INVALID_ALT_TRAFFIC_CLASS',
  'INVALID_ALT_HOP_LIMIT',
  'INVALID_ALT_PACKET_RATE',
  'PORT_CM_REDIRECT',
  'PORT_REDIRECT',
  'INVALID_MTU',
  'INSUFFICIENT_RESP_RESOURCES',
  'CONSUMER_DEFINED',
  'INVALID_RNR_RETRY',
  'DUPLICATE_LOCAL_COMM_ID',
  'INVALID_CLASS_VERSION',
  'INVALID_FLOW_LABEL',
  'INVALID_ALT_FLOW_LABEL',
  undefined,
  'VENDOR_OPTION_NOT_SUPPORTED',
];

/** Why the request of a datagram's address failed: IBTA specification, SIDR REP status (16.7.2), by number. */
const resolutions: readonly (string | undefined)[] = [
  undefined,
  'UNSUPPORTED',
  'REJECT',
  'NO_QP',
  'REDIRECT',
  'UNSUPPORTED_VERSION',
];

/** The name of an event's status: of an errno, or of what the peer's connection manager gave as the reason. */
export function reasonOf(event: string, status: number): string | null {
  if (status === 0) return null;
  if (status < 0) return errnoName(status);
  const reasons = event === 'rejected' ? rejections : event === 'unreachable' ? resolutions : [];
  return reasons[status] ?? `REASON_${status}`;
}
