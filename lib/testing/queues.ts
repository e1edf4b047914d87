import type { CmEndpoint } from './endpoint.js';
import type { Completion, WorkRequest } from './records.js';

/** `ibv_cq` */
export class StandInCompletionQueue {
  readonly handle: number;
  readonly entries: number;
  readonly pending: Completion[] = [];
  /** Whether completions are delivered by themselves. */
  watched = true;
  scheduled = false;

  constructor(handle: number, entries: number) {
    this.handle = handle;
    this.entries = entries;
  }
}

/** `ibv_pd` */
export class StandInDomain {
  /** What lives in it. */
  users = 0;
}

/** `ibv_mr` */
export class StandInRegion {
  readonly domain: StandInDomain;
  readonly bytes: Uint8Array;
  readonly access: number;
  readonly address: bigint;
  readonly key: number;
  inFlight = 0;

  constructor(domain: StandInDomain, bytes: Uint8Array, access: number, address: bigint, key: number) {
    this.domain = domain;
    this.bytes = bytes;
    this.access = access;
    this.address = address;
    this.key = key;
  }
}

export const queuePairStates = { reset: 0, ready: 3, error: 6 } as const;

/** `ibv_qp` */
export class StandInQueuePair {
  readonly handle: number;
  readonly domain: StandInDomain;
  readonly sendQueue: StandInCompletionQueue;
  readonly receiveQueue: StandInCompletionQueue;
  readonly maxSends: number;
  readonly maxReceives: number;
  readonly endpoint: CmEndpoint | undefined;
  /** Posted and not completed, the oldest first. */
  sends: WorkRequest[] = [];
  receives: WorkRequest[] = [];
  state: number = queuePairStates.reset;
  /** A pump is on its way. */
  pumping = false;

  constructor(
    handle: number,
    domain: StandInDomain,
    queues: { send: StandInCompletionQueue; receive: StandInCompletionQueue },
    limits: { sends: number; receives: number },
    endpoint: CmEndpoint | undefined,
  ) {
    this.handle = handle;
    this.domain = domain;
    this.sendQueue = queues.send;
    this.receiveQueue = queues.receive;
    this.maxSends = limits.sends;
    this.maxReceives = limits.receives;
    this.endpoint = endpoint;
    if (endpoint !== undefined) endpoint.queuePair = this;
  }

  /** The other end's, while the connection is there. */
  get peer(): StandInQueuePair | undefined {
    return this.endpoint?.connected ? this.endpoint.peer?.queuePair : undefined;
  }
}
