import {
  AddressHandle,
  CompletionQueue,
  Device,
  grhLength,
  type MemoryRegion,
  ProtectionDomain,
  QueuePair,
  rings,
  SharedReceiveQueue,
  type WorkCompletion,
} from 'node-rdma/verbs';
import type { Whereabouts } from './pingpong-exchange.js';

export type Kind = 'rc' | 'srq' | 'ud';

export interface EndpointOptions {
  kind: Kind;
  device: string;
  gidIndex: number;
  /** Bytes of a message. */
  size: number;
  /** Receives posted. */
  depth: number;
  /** More than one for `srq` only. */
  queuePairs: number;
}

/** The Q_Key of ibv_ud_pingpong. */
const qkey = 0x1111_1111;

/** Queue pairs brought up as rdma-core's pingpong programs do it: by hand, with the same attributes. */
export class PingpongEndpoint {
  readonly whereabouts: readonly Whereabouts[];
  readonly #options: EndpointOptions;
  readonly #device: Device;
  readonly #pd: ProtectionDomain;
  readonly #srq: SharedReceiveQueue | undefined;
  readonly #queuePairs: readonly QueuePair[];
  readonly #memory: MemoryRegion;
  /** Bytes before each datagram that are the header's. */
  readonly #lead: number;
  #destinations: { addressHandle: AddressHandle; queuePairNumber: number; qkey: number }[] = [];

  constructor(options: EndpointOptions) {
    const { kind, size, depth } = options;
    this.#options = options;
    this.#device = Device.open(options.device);
    this.#pd = new ProtectionDomain(this.#device);
    const cq = new CompletionQueue(this.#device, { entries: depth + options.queuePairs });
    this.#srq =
      kind === 'srq' ? new SharedReceiveQueue(this.#pd, { maxRequests: depth, maxSges: 1 }) : undefined;
    this.#lead = kind === 'ud' ? grhLength : 0;
    this.#memory = this.#pd.allocateSync(size + this.#lead);
    this.#queuePairs = Array.from(
      { length: options.queuePairs },
      () =>
        new QueuePair(this.#pd, {
          type: kind === 'ud' ? 'UD' : 'RC',
          sendCompletionQueue: cq,
          receiveCompletionQueue: cq,
          maxSendRequests: 1,
          ...(this.#srq === undefined ? { maxReceiveRequests: depth } : { sharedReceiveQueue: this.#srq }),
        }),
    );
    const gid = this.#device.queryGid(1, options.gidIndex);
    const { lid } = this.#device.queryPort();
    this.whereabouts = this.#queuePairs.map(({ number }) => ({
      lid,
      number,
      psn: Math.floor(Math.random() * 0x100_0000),
      gid,
    }));
    for (const queuePair of this.#queuePairs) {
      const ud = kind === 'ud' ? { qkey } : { access: [] };
      queuePair.modify({ state: 'INIT', pkeyIndex: 0, portNumber: 1, ...ud });
    }
  }

  /** To RTR and on to RTS, with what the peer has told. */
  prepare(peers: readonly Whereabouts[]): void {
    const { gidIndex, kind } = this.#options;
    for (const [i, queuePair] of this.#queuePairs.entries()) {
      const peer = peers[i]!;
      const addressHandle = { lid: peer.lid, gid: peer.gid, sgidIndex: gidIndex, hopLimit: 1 };
      const sqPsn = this.whereabouts[i]!.psn;
      if (kind === 'ud') {
        queuePair.modify({ state: 'RTR' });
        queuePair.modify({ state: 'RTS', sqPsn });
        this.#destinations.push({
          addressHandle: new AddressHandle(this.#pd, addressHandle),
          queuePairNumber: peer.number,
          qkey,
        });
        continue;
      }
      queuePair.modify({
        state: 'RTR',
        pathMtu: 1024,
        destQpNumber: peer.number,
        rqPsn: peer.psn,
        maxDestRdAtomic: 1,
        minRnrTimer: 12,
        addressHandle,
      });
      queuePair.modify({ state: 'RTS', sqPsn, timeout: 14, retryCount: 7, rnrRetry: 7, maxRdAtomic: 1 });
    }
  }

  /** Keeps the receives filled; `received` gets the index of the queue pair that each message came to. */
  receive(received: (index: number) => void, failed: (error: Error) => void): void {
    const indices = new Map(this.#queuePairs.map(({ completionKey }, i) => [completionKey, i]));
    const sges = [{ region: this.#memory }];
    const post = (handler: { complete(completion: WorkCompletion): void }) => {
      if (this.#srq !== undefined) this.#srq.post({ sges }, handler);
      else this.#queuePairs[0]!.post({ opcode: 'receive', sges }, handler);
    };
    const handler = {
      complete(completion: WorkCompletion) {
        if (!completion.ok) return failed(completion.error());
        post(handler);
        received(indices.get(completion.queuePair)!);
      },
    };
    for (let i = 0; i < this.#options.depth; i++) post(handler);
    // Before the peer hears that it may send.
    rings().requests.flush();
  }

  send(index: number, sent: (index: number) => void, failed: (error: Error) => void): void {
    const destination = this.#destinations[index];
    const sges = [{ region: this.#memory, offset: this.#lead, length: this.#options.size }];
    const request = destination === undefined ? { sges } : { sges, destination };
    this.#queuePairs[index]!.post(
      { opcode: 'send', ...request },
      {
        complete: (completion) => (completion.ok ? sent(index) : failed(completion.error())),
      },
    );
  }

  close(): Promise<void> {
    return this.#device.close();
  }
}
