import type { NativeCmEvent } from '../binding/cm.js';
import { type RdmaError, systemError } from '../errors.js';

/** Names of `rdma_cm_event_type` by number, as they are emitted: `rdma_get_cm_event(3)`. */
const eventNames = [
  'address-resolved',
  'address-error',
  'route-resolved',
  'route-error',
  'connect-request',
  'connect-response',
  'connect-error',
  'unreachable',
  'rejected',
  'established',
  'disconnected',
  'device-removal',
  'multicast-join',
  'multicast-error',
  'address-change',
  'timewait-exit',
] as const;

export type CmEventName = (typeof eventNames)[number];

/** What both sides of a connection ask for or offer: `rdma_connect(3)`, `struct rdma_conn_param`. */
export interface ConnectionParameters {
  /** RDMA Reads and atomics that this side will answer at once (IRD), 0 to 255; default 1. */
  responderResources?: number;
  /** RDMA Reads and atomics that this side will have outstanding (ORD), 0 to 255; default 1. */
  initiatorDepth?: number;
  /** Hardware flow control; default false. Ignored on iWARP. */
  flowControl?: boolean;
  /** Retries of a lost packet, 0 to 7; default 7. Ignored on iWARP. */
  retryCount?: number;
  /** Retries when the peer has no receive posted, 0 to 7 where 7 is for ever; default 7. Ignored on iWARP. */
  rnrRetryCount?: number;
  /** What the peer's event carries; at most what the transport takes (see `DeviceCapabilities`). */
  privateData?: Uint8Array;
}

/** An event of an rdma_cm event channel; it is acknowledged already. */
export interface CmEvent {
  readonly name: CmEventName;
  /** 0, a negative errno, or the transport's reason of a rejection (InfiniBand: IBTA table 12.6.7.2, 28 is the peer). */
  readonly status: number;
  /**
   * The peer's private data. RoCE and InfiniBand pad it with zeros to the size of their message; only a length
   * inside the data tells where it ends.
   */
  readonly privateData: Uint8Array;
  /** Of `connect-request` and `established`. siw, irdma and qedr swap these two in `established`. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly flowControl: boolean;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  /** The peer's queue pair number, where the transport says it. */
  readonly qpNumber: number;
}

export function toCmEvent(event: NativeCmEvent): CmEvent {
  const { responderResources, initiatorDepth, retryCount, rnrRetryCount, qpNumber, status, privateData } =
    event;
  return {
    name: eventNames[event.type] ?? 'connect-error',
    status,
    privateData,
    responderResources,
    initiatorDepth,
    flowControl: event.flowControl !== 0,
    retryCount,
    rnrRetryCount,
    qpNumber,
  };
}

/** The error that a failing event stands for; a status that is no errno becomes `fallback`. */
export function eventError(
  event: CmEvent,
  syscall: string,
  fallback: number,
  address?: string,
  port?: number,
): RdmaError {
  const errno = event.status < 0 ? event.status : -fallback;
  return systemError(errno, syscall, {
    cause: event,
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  });
}
