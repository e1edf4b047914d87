import { type CompletionField, completionFields } from './completion-field.js';
import type { Device, Transport } from './device.js';

/** What a device can do, known before it is tried. Limits are the device's own. */
export interface DeviceCapabilities {
  transport: Transport;
  queuePairTypes: readonly ('RC' | 'UC' | 'UD')[];
  /** Immediate data with Send and Write. */
  immediateData: boolean;
  sendWithInvalidate: boolean;
  localInvalidate: boolean;
  atomics: boolean;
  /** Most windows; 0 where there are none. */
  memoryWindows: number;
  /** Most shared receive queues; 0 where there are none. */
  sharedReceiveQueues: number;
  querySharedReceiveQueue: boolean;
  addressHandles: boolean;
  /** Most multicast groups; 0 where there are none. */
  multicastGroups: number;
  resizeCompletionQueue: boolean;
  completionModeration: boolean;
  /** What an extended completion queue can tell of a completion; empty where there is no such queue. */
  completionFields: readonly CompletionField[];
  /** Whether the sink of a Read needs REMOTE_WRITE access (iWARP: RFC 5040 §5.3). */
  readSinkNeedsRemoteWrite: boolean;
  /** Whether a Send without a posted receive is retried (RNR) instead of ending the connection. */
  receiverNotReady: boolean;
  /** Most gather elements of a Read. */
  maxSgeRead: number;
  maxSge: number;
  /** Bytes of private data that `connect` and `accept` take. */
  connectPrivateData: number;
  acceptPrivateData: number;
  rejectPrivateData: number;
}

/**
 * No call tells what a provider lacks. What iWARP does not have follows from RFC 5040 and 7306; what siw does not have
 * beyond that, and rxe, from their user-space providers (`providers/siw`, `providers/rxe` of rdma-core).
 */
export function capabilitiesOf(device: Device): DeviceCapabilities {
  const { attributes, extendedAttributes, transport, driver } = device;
  const iwarp = transport === 'iwarp';
  const siw = driver === 'siw';
  return {
    transport,
    queuePairTypes: iwarp ? ['RC'] : ['RC', 'UC', 'UD'],
    immediateData: !iwarp,
    sendWithInvalidate: true,
    localInvalidate: !siw,
    atomics: attributes.atomicCap > 0,
    memoryWindows: siw ? 0 : attributes.maxMw,
    sharedReceiveQueues: attributes.maxSrq,
    querySharedReceiveQueue: attributes.maxSrq > 0 && !siw,
    addressHandles: !iwarp,
    multicastGroups: iwarp ? 0 : attributes.maxMcastGrp,
    resizeCompletionQueue: !siw,
    completionModeration: extendedAttributes.maxCqModerationCount > 0,
    completionFields: completionFields(device.completionFieldBits),
    readSinkNeedsRemoteWrite: iwarp,
    receiverNotReady: !iwarp,
    maxSgeRead: attributes.maxSgeRd,
    maxSge: attributes.maxSge,
    // siw keeps the length in a u8 and adds 4 bytes of its own; InfiniBand: CM REQ, REP and REJ messages.
    connectPrivateData: iwarp ? 251 : 56,
    acceptPrivateData: iwarp ? 251 : 196,
    rejectPrivateData: iwarp ? 251 : 148,
  };
}
