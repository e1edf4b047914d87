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

/** `ibv_query_device(3)`. */
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
  badPkeyCounter: number;
  qkeyViolationCounter: number;
  lid: number;
  smLid: number;
  lmc: number;
  maxVlNumber: number;
  smSl: number;
  subnetTimeout: number;
  initTypeReply: number;
  activeWidth: number;
  activeSpeed: number;
  physicalState: number;
  /** 0 unspecified, 1 InfiniBand, 2 Ethernet. */
  linkLayer: number;
  flags: number;
  portCapFlags2: number;
}

/** Those of `ibv_device_attr_ex` beyond `ibv_device_attr`; 0 where the device has no such thing. */
export interface NativeExtendedDeviceAttributes {
  completionTimestampMask: bigint;
  /** kHz. */
  coreClock: bigint;
  deviceCapFlagsExtended: bigint;
  onDemandPagingCaps: bigint;
  maxDeviceMemorySize: bigint;
  maxTso: number;
  maxWorkQueuesReceive: number;
  rawPacketCaps: number;
  maxTagMatchingSrqs: number;
  maxCqModerationCount: number;
  maxCqModerationPeriod: number;
  pciAtomicFetchAdd: number;
  pciAtomicSwap: number;
  pciAtomicCompareSwap: number;
}

/** `ibv_ah_attr`; a `gid` makes it global. */
export interface NativeAddressVector {
  gid: Uint8Array | null;
  sgidIndex: number;
  hopLimit: number;
  trafficClass: number;
  flowLabel: number;
  lid: number;
  pathBits: number;
  staticRate: number;
  serviceLevel: number;
  portNumber: number;
}

/** What `ibv_init_ah_from_wc(3)` reads of a completion. */
export interface NativeDatagramSource {
  queuePairNumber: number;
  sourceLid: number;
  serviceLevel: number;
  pathBits: number;
  pkeyIndex: number;
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
  /** A shared receive queue that takes the place of a receive queue; 0 none. */
  srq: number;
}

/** What a new queue pair can hold: `ibv_qp_cap`. */
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
  currentState?: number;
  pathMigrationState?: number;
  sqDrainedNotify?: number;
  rateLimit?: number;
  alternatePkeyIndex?: number;
  alternatePortNumber?: number;
  alternateTimeout?: number;
  addressHandle?: NativeAddressVector;
  alternateAddressHandle?: NativeAddressVector;
}

/** What `ibv_query_qp(3)` tells. */
export type NativeQueuePairState = Required<Omit<NativeQueuePairAttributes, 'sqDrainedNotify'>> &
  Omit<NativeQueuePair, 'handle' | 'number'> & { sqDraining: number };

/** Native functions of verbs objects: `native/verbs/`. All numbers named after an object are handles. */
export interface NativeVerbs {
  listDevices(): NativeDeviceSummary[];
  /** librdmacm's context of the device where it has one, else `ibv_open_device(3)`. */
  openDevice(name: string): number;
  describeDevice(device: number): NativeDeviceSummary;
  queryDevice(device: number): NativeDeviceAttributes;
  /** `ibv_query_device_ex(3)`. */
  queryDeviceExtended(device: number): NativeExtendedDeviceAttributes;
  /** Fields that an extended completion queue can have: 1 timestamp, 2 wall clock. */
  queryCompletionFields(device: number): number;
  queryPort(device: number, port: number): NativePortAttributes;
  /** 16 bytes. */
  queryGid(device: number, port: number, index: number): Uint8Array;
  /** `ibv_query_gid_ex(3)`; `type`: 0 InfiniBand, 1 RoCE 1, 2 RoCE 2. */
  queryGidEntry(
    device: number,
    port: number,
    index: number,
  ): { gid: Uint8Array; type: number; interfaceIndex: number };
  queryPkey(device: number, port: number, index: number): number;
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
    /** Not 0: `ibv_create_cq_ex(3)` with these fields. */
    fields: number,
  ): { handle: number; entries: number };
  /** 0 manual, 1 event, 2 poll, 3 adaptive; `spin`: longest spin of a wake-up in microseconds. */
  setCompletionQueueWaiting(cq: number, waiting: number, spin: number): void;
  /** Delivers what has completed, at most `limit`, through the completion hook before it returns; the count. */
  pollCompletionQueue(cq: number, limit: number): number;
  /** `ibv_resize_cq(3)`; the entries that the queue has now. */
  resizeCompletionQueue(cq: number, entries: number): number;
  /** `ibv_modify_cq(3)`. */
  moderateCompletionQueue(cq: number, count: number, period: number): void;
  destroyCompletionQueue(cq: number): Promise<void>;
  /** Whether the queue keeps the process alive. */
  referenceCompletionQueue(cq: number, alive: boolean): void;

  createQueuePair(options: NativeQueuePairOptions): NativeQueuePair;
  modifyQueuePair(qp: number, attributes: NativeQueuePairAttributes): void;
  queryQueuePair(qp: number): NativeQueuePairState;
  attachMulticast(qp: number, gid: Uint8Array, lid: number): void;
  detachMulticast(qp: number, gid: Uint8Array, lid: number): void;
  /** Work requests posted and not completed: [send, receive]. */
  queuePairInFlight(qp: number): [number, number];
  /** Every work request still outstanding comes back as a flushed completion before the promise resolves. */
  destroyQueuePair(qp: number): Promise<void>;

  createSharedReceiveQueue(
    pd: number,
    maxRequests: number,
    maxSges: number,
  ): { handle: number; maxRequests: number; maxSges: number };
  /** `ibv_modify_srq(3)` with `IBV_SRQ_LIMIT`. */
  armSharedReceiveQueue(srq: number, limit: number): void;
  querySharedReceiveQueue(srq: number): { maxRequests: number; maxSges: number; limit: number };
  sharedReceiveQueueInFlight(srq: number): number;
  /** `EBUSY` while a queue pair uses it. What is left posted comes back as flushed before the promise resolves. */
  destroySharedReceiveQueue(srq: number): Promise<void>;

  createAddressHandle(pd: number, attributes: NativeAddressVector): number;
  /** `ibv_init_ah_from_wc(3)`; `header`: the 40 bytes before the message, null where there are none. */
  replyAddress(
    pd: number,
    port: number,
    completion: NativeDatagramSource,
    header: Uint8Array | null,
  ): NativeAddressVector;
  destroyAddressHandle(ah: number): void;
}
