import type { NativeCmEvent } from '../binding/cm.js';
import { type RdmaError, systemError } from '../errors.js';
import type { AddressVector } from '../verbs/address-vector.js';
import { reasonOf } from './reason.js';

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

/** `rdma_cm_event_type`, in lower case with dashes. */
export type CmEventName = (typeof eventNames)[number];

/** How datagrams reach a peer, or a multicast group: `struct rdma_ud_param`. */
export interface DatagramParameters {
  /** What an `AddressHandle` is made from. */
  readonly addressVector: Readonly<Required<AddressVector>>;
  /** The peer's queue pair; 0xffffff for a group. */
  readonly queuePairNumber: number;
  readonly qkey: number;
}

/** An event of an rdma_cm event channel; it is acknowledged already. */
export interface CmEvent {
  readonly name: CmEventName;
  /** 0, a negative errno, or the transport's reason of a rejection (InfiniBand: IBTA table 12.6.7.2, 28 is the peer). */
  readonly status: number;
  /** The status by name, for example `ECONNRESET` or `CONSUMER_DEFINED`; null for 0. */
  readonly reason: string | null;
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
  /** Of `established` in the port spaces of datagrams, and of `multicast-join`. */
  readonly datagram?: DatagramParameters;
  /** The address that a multicast group was joined by: of `multicast-join` and `multicast-error`. */
  readonly group?: string;
}

/** `group`: the address that the event's group was joined by. */
export function toCmEvent(event: NativeCmEvent, group?: string): CmEvent {
  const { responderResources, initiatorDepth, retryCount, rnrRetryCount, qpNumber, status, privateData } =
    event;
  const name = eventNames[event.type] ?? 'connect-error';
  const { addressVector, qkey } = event;
  return {
    name,
    status,
    reason: reasonOf(name, status),
    privateData,
    responderResources,
    initiatorDepth,
    flowControl: event.flowControl !== 0,
    retryCount,
    rnrRetryCount,
    qpNumber,
    ...(addressVector !== undefined && qkey !== undefined
      ? { datagram: { addressVector, queuePairNumber: qpNumber, qkey } }
      : {}),
    ...(group === undefined ? {} : { group }),
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
