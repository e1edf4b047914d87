export interface NativeDeviceSummary {
  name: string;
  /** Kernel driver, for example `siw`, `rxe`, `mlx5_core`. */
  driver: string;
  guid: string;
  /** `ibv_node_type`. */
  nodeType: number;
  /** `ibv_transport_type`: 0 InfiniBand and RoCE, 1 iWARP, -1 unknown. */
  transport: number;
}

export interface NativeDeviceAttributes {
  firmwareVersion: string;
  maxMrSize: bigint;
  vendorId: number;
  vendorPartId: number;
  hardwareVersion: number;
  maxQp: number;
  maxQpWr: number;
  deviceCapFlags: number;
  maxSge: number;
  maxSgeRd: number;
  maxCq: number;
  maxCqe: number;
  maxMr: number;
  maxPd: number;
  maxQpRdAtom: number;
  maxQpInitRdAtom: number;
  atomicCap: number;
  maxMw: number;
  maxMcastGrp: number;
  maxAh: number;
  maxSrq: number;
  maxSrqWr: number;
  maxSrqSge: number;
  maxPkeys: number;
  physPortCnt: number;
}

export interface NativePortAttributes {
  /** `ibv_port_state`. */
  state: number;
  /** `ibv_mtu`: 1 is 256 bytes … 5 is 4096. */
  maxMtu: number;
  activeMtu: number;
  gidTableLength: number;
  portCapFlags: number;
  maxMessageSize: number;
  pkeyTableLength: number;
  lid: number;
  activeWidth: number;
  activeSpeed: number;
  physicalState: number;
  /** 0 unspecified, 1 InfiniBand, 2 Ethernet. */
  linkLayer: number;
}

export interface NativeQueuePairOptions {
  pd: number;
  sendCq: number;
  receiveCq: number;
  /** `ibv_qp_type`: 2 RC, 3 UC, 4 UD. */
  type: number;
  maxSendWr: number;
  maxReceiveWr: number;
  maxSendSge: number;
  maxReceiveSge: number;
  maxInlineData: number;
  /** A cm_id handle makes it `rdma_create_qp(3)`; 0 `ibv_create_qp(3)`. */
  cmId: number;
}

export interface NativeQueuePair {
  handle: number;
  number: number;
  maxSendWr: number;
  maxReceiveWr: number;
  maxSendSge: number;
  maxReceiveSge: number;
  maxInlineData: number;
}

/** Attributes for `ibv_modify_qp(3)`; the mask follows from what is present. */
export interface NativeQueuePairAttributes {
  state?: number;
  pathMtu?: number;
  qkey?: number;
  rqPsn?: number;
  sqPsn?: number;
  destQpNumber?: number;
  accessFlags?: number;
  pkeyIndex?: number;
  portNumber?: number;
  minRnrTimer?: number;
  maxRdAtomic?: number;
  maxDestRdAtomic?: number;
  timeout?: number;
  retryCount?: number;
  rnrRetry?: number;
  addressHandle?: {
    gid: Uint8Array;
    sgidIndex: number;
    hopLimit: number;
    trafficClass: number;
    flowLabel: number;
    lid: number;
    serviceLevel: number;
    portNumber: number;
  };
}

/** Native functions of verbs objects: `native/verbs/`. All numbers named after an object are handles. */
export interface NativeVerbs {
  listDevices(): NativeDeviceSummary[];
  /** librdmacm's context of the device where it has one, else `ibv_open_device(3)`. */
  openDevice(name: string): number;
  describeDevice(device: number): NativeDeviceSummary;
  queryDevice(device: number): NativeDeviceAttributes;
  queryPort(device: number, port: number): NativePortAttributes;
  /** 16 bytes. */
  queryGid(device: number, port: number, index: number): Uint8Array;
  closeDevice(device: number): void;

  allocatePd(device: number): number;
  /** `EBUSY` while anything lives in it. */
  deallocatePd(pd: number): void;

  createCompletionChannel(device: number): number;
  destroyCompletionChannel(channel: number): void;
  /** `channel` 0: none, completions are taken by `pollCompletionQueue` only. */
  createCompletionQueue(
    device: number,
    entries: number,
    channel: number,
  ): { handle: number; entries: number };
  /** 0 manual, 1 event, 2 poll, 3 adaptive; `spin`: longest spin of a wake-up in microseconds. */
  setCompletionQueueWaiting(cq: number, waiting: number, spin: number): void;
  /** Delivers what has completed, at most `limit`, through the completion hook before it returns; the count. */
  pollCompletionQueue(cq: number, limit: number): number;
  destroyCompletionQueue(cq: number): Promise<void>;
  /** Whether the queue keeps the process alive. */
  referenceCompletionQueue(cq: number, alive: boolean): void;

  createQueuePair(options: NativeQueuePairOptions): NativeQueuePair;
  modifyQueuePair(qp: number, attributes: NativeQueuePairAttributes): void;
  queryQueuePair(qp: number): { state: number; maxRdAtomic: number; maxDestRdAtomic: number };
  /** Work requests posted and not completed: [send, receive]. */
  queuePairInFlight(qp: number): [number, number];
  /** Every work request still outstanding comes back as a flushed completion before the promise resolves. */
  destroyQueuePair(qp: number): Promise<void>;
}
