import type { NativeAddressVector, NativeQueuePairAttributes } from './verbs.js';

/** An IP address as the native border takes it: numeric, an IPv6 scope as `%name` or `%index`. */
export interface NativeAddress {
  address: string;
  port: number;
}

export interface NativeConnectionParameters {
  responderResources: number;
  initiatorDepth: number;
  flowControl: number;
  retryCount: number;
  rnrRetryCount: number;
  privateData: Uint8Array | null;
  /** A queue pair that was not made on the id, and is brought up by hand; 0 for the id's own. */
  queuePair: number;
}

/** One event of an rdma_cm event channel, already acknowledged: `rdma_get_cm_event(3)`. */
export interface NativeCmEvent {
  /** `rdma_cm_event_type`. */
  type: number;
  /** The event's cm_id; for a CONNECT_REQUEST the new one. */
  id: number;
  /** The listening cm_id of a CONNECT_REQUEST, else 0. */
  listener: number;
  /** 0, a negative errno, or the transport's reason for a rejection. */
  status: number;
  privateData: Uint8Array;
  responderResources: number;
  initiatorDepth: number;
  flowControl: number;
  retryCount: number;
  rnrRetryCount: number;
  qpNumber: number;
  /** The number that a multicast group was joined with; 0 for events of anything else. */
  group: number;
  /** With `addressVector`: how datagrams reach the peer, or the group. */
  qkey?: number;
  addressVector?: NativeAddressVector;
}

/** The addresses of both ends of a cm_id; port 0 and `0.0.0.0` until they are known. */
export interface NativeCmIdInfo {
  localAddress: string;
  localPort: number;
  localFamily: number;
  remoteAddress: string;
  remotePort: number;
  remoteFamily: number;
  /** 0 until an address is bound or resolved to a device. */
  portNumber: number;
}

export interface NativeAddressInfoHints {
  /** `RAI_…` */
  flags: number;
  /** `AF_INET` 2, `AF_INET6` 10, 0 any. */
  family: number;
  /** `rdma_port_space`, 0 any. */
  portSpace: number;
  /** `ibv_qp_type`, 0 any. */
  queuePairType: number;
  source: NativeAddress | null;
  destination: NativeAddress | null;
}

export interface NativeAddressInfo {
  flags: number;
  family: number;
  portSpace: number;
  queuePairType: number;
  sourceAddress: NativeAddress | null;
  destinationAddress: NativeAddress | null;
  sourceName: string | null;
  destinationName: string | null;
  route: Uint8Array | null;
  connect: Uint8Array | null;
}

/** Native functions of rdma_cm objects: `native/cm/`. */
export interface NativeCm {
  createEventChannel(): number;
  /** Ids that are still on the channel keep it until they are destroyed. */
  destroyEventChannel(channel: number): Promise<void>;
  referenceEventChannel(channel: number, alive: boolean): void;

  /** `portSpace`: `rdma_port_space`, TCP is 0x0106. */
  createId(channel: number, portSpace: number): number;
  /** Of `RDMA_OPTION_ID`: 0 TOS, 1 REUSEADDR, 2 AFONLY, 3 ACK_TIMEOUT. */
  setIdOption(id: number, option: number, value: number): void;
  migrateId(id: number, channel: number): void;
  bindAddress(id: number, address: string, port: number): void;
  resolveAddress(id: number, source: NativeAddress | null, destination: NativeAddress, timeout: number): void;
  resolveRoute(id: number, timeout: number): void;
  listen(id: number, backlog: number): void;
  /** `rdma_connect(3)` in the worker pool: on siw it blocks for the TCP handshake. */
  connect(id: number, parameters: NativeConnectionParameters): Promise<void>;
  accept(id: number, parameters: NativeConnectionParameters): void;
  reject(id: number, privateData: Uint8Array | null): void;
  /** `ENOTSUP` on iWARP. */
  establish(id: number): void;
  /** `ibv_event_type`: 4 is COMM_EST, 6 PATH_MIG. */
  notify(id: number, event: number): void;
  disconnect(id: number): void;
  /** What brings a queue pair of this connection to `state`, an `ibv_qp_state`. */
  initialAttributes(id: number, state: number): NativeQueuePairAttributes;
  /** `group`: a number of the caller's, at least 1, that the events of the group carry. */
  joinMulticast(id: number, group: number, address: string, sendOnly: boolean): void;
  leaveMulticast(id: number, group: number): Promise<void>;
  /** Rejects a request that was never answered; destroys a queue pair that is still there. */
  destroyId(id: number): Promise<void>;
  describeId(id: number): NativeCmIdInfo;
  /** The device an id is bound to, as `openDevice` would return it; 0 when it has none. */
  deviceOfId(id: number): number;
  /** Names of the devices that rdma_cm can use. */
  getDevices(): string[];
  getAddressInfo(
    node: string | null,
    service: string | null,
    hints: NativeAddressInfoHints,
  ): Promise<NativeAddressInfo[]>;
}
