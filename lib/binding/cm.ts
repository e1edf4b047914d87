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
}

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

export interface NativeAddressInfo {
  family: number;
  portSpace: number;
  qpType: number;
  sourceAddress: NativeAddress | null;
  destinationAddress: NativeAddress | null;
}

/** Native functions of rdma_cm objects: `native/cm/`. */
export interface NativeCm {
  createEventChannel(): number;
  /** Ids that are still on the channel keep it until they are destroyed. */
  destroyEventChannel(channel: number): Promise<void>;
  referenceEventChannel(channel: number, alive: boolean): void;

  /** `portSpace`: `rdma_port_space`, TCP is 0x0106. */
  createId(channel: number, portSpace: number): number;
  bindAddress(id: number, address: string, port: number): void;
  resolveAddress(id: number, source: NativeAddress | null, destination: NativeAddress, timeout: number): void;
  resolveRoute(id: number, timeout: number): void;
  listen(id: number, backlog: number): void;
  /** `rdma_connect(3)` in the worker pool: on siw it blocks for the TCP handshake. */
  connect(id: number, parameters: NativeConnectionParameters): Promise<void>;
  accept(id: number, parameters: NativeConnectionParameters): void;
  reject(id: number, privateData: Uint8Array | null): void;
  disconnect(id: number): void;
  /** Rejects a request that was never answered; destroys a queue pair that is still there. */
  destroyId(id: number): Promise<void>;
  describeId(id: number): NativeCmIdInfo;
  /** The device an id is bound to, as `openDevice` would return it; 0 when it has none. */
  deviceOfId(id: number): number;
  getAddressInfo(
    node: string | null,
    service: string | null,
    hints: { flags: number; family: number; portSpace: number },
  ): Promise<NativeAddressInfo[]>;
}
