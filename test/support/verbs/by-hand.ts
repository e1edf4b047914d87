import {
  CompletionQueue,
  Device,
  type MemoryRegion,
  ProtectionDomain,
  QueuePair,
  type QueuePairOptions,
} from 'node-rdma/verbs';
import type { GuestDevice } from '../devices.js';

/** What the peer has to know: what `ibv_rc_pingpong` sends over TCP. */
export interface Whereabouts {
  gid: Uint8Array;
  number: number;
  psn: number;
}

/** Index of the GID of an IPv4 address: `::ffff:a.b.c.d`. */
export function gidIndexOf(device: Device, address: string): number {
  const wanted = Uint8Array.from([...new Uint8Array(10), 0xff, 0xff, ...address.split('.').map(Number)]);
  for (let index = 0; index < device.queryPort().gidTableLength; index++) {
    if (Buffer.compare(device.queryGid(1, index), wanted) === 0) return index;
  }
  throw new Error(`${device.name} has no GID of ${address}`);
}

/** A queue pair on RoCE that is brought up without rdma_cm, and what it needs. */
export class HandEndpoint {
  readonly device: Device;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly queuePair: QueuePair;
  readonly memory: MemoryRegion;
  readonly sgidIndex: number;
  readonly whereabouts: Whereabouts;

  constructor({ device, address }: GuestDevice, options: Partial<QueuePairOptions> = {}) {
    this.device = Device.open(device);
    this.pd = new ProtectionDomain(this.device);
    this.cq = new CompletionQueue(this.device, { entries: 128 });
    this.queuePair = new QueuePair(this.pd, {
      sendCompletionQueue: this.cq,
      receiveCompletionQueue: this.cq,
      ...options,
    });
    this.memory = this.pd.allocateSync(65536, {
      access: ['remote-write', 'remote-read', 'remote-atomic', 'window-bind', 'read-sink'],
    });
    this.sgidIndex = gidIndexOf(this.device, address);
    this.whereabouts = {
      gid: this.device.queryGid(1, this.sgidIndex),
      number: this.queuePair.number,
      psn: 1 + (this.queuePair.number & 0xfff),
    };
  }

  initialise(): void {
    this.queuePair.modify({
      state: 'INIT',
      pkeyIndex: 0,
      portNumber: 1,
      access: ['remote-write', 'remote-read', 'remote-atomic', 'window-bind'],
    });
  }

  readyToReceive(peer: Whereabouts): void {
    this.queuePair.modify({
      state: 'RTR',
      pathMtu: 1024,
      destQpNumber: peer.number,
      rqPsn: peer.psn,
      maxDestRdAtomic: 4,
      minRnrTimer: 12,
      addressHandle: { gid: peer.gid, sgidIndex: this.sgidIndex },
    });
  }

  readyToSend(): void {
    this.queuePair.modify({
      state: 'RTS',
      sqPsn: this.whereabouts.psn,
      timeout: 14,
      retryCount: 7,
      rnrRetry: 7,
      maxRdAtomic: 4,
    });
  }

  receive(length = 4096, offset = 0) {
    return this.queuePair.submit({ opcode: 'receive', sges: [{ region: this.memory, offset, length }] });
  }

  close(): Promise<void> {
    return this.device.close();
  }
}

/** Two ends on one device, ready to send to each other. */
export function handPair(
  device: GuestDevice,
  options: Partial<QueuePairOptions> = {},
): readonly [HandEndpoint, HandEndpoint] {
  const ends = [new HandEndpoint(device, options), new HandEndpoint(device, options)] as const;
  for (const end of ends) end.initialise();
  ends[0].readyToReceive(ends[1].whereabouts);
  ends[1].readyToReceive(ends[0].whereabouts);
  for (const end of ends) end.readyToSend();
  return ends;
}
