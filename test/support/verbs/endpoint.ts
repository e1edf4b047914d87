import { once } from 'node:events';
import { type CmAddress, type CmEvent, CmId, type ConnectionParameters, EventChannel } from 'node-rdma/cm';
import {
  CompletionQueue,
  type CompletionQueueOptions,
  Device,
  type MemoryRegion,
  ProtectionDomain,
  type QueuePair,
  type QueuePairOptions,
} from 'node-rdma/verbs';
import type { GuestDevice } from '../devices.js';

export interface EndpointOptions {
  queuePair?: Partial<QueuePairOptions>;
  completionQueue?: Partial<CompletionQueueOptions>;
  /** Bytes of {@link Endpoint.memory}; default 64 KiB. */
  memory?: number;
  /** Runs when the queue pair is there, before connect or accept. */
  prepare?: (endpoint: Endpoint) => void;
}

export interface PairOptions {
  active?: EndpointOptions;
  passive?: EndpointOptions;
  connect?: ConnectionParameters;
  accept?: ConnectionParameters;
}

/** One end of a connection, made of the objects of verbs and cm without anything around them. */
export class Endpoint {
  readonly id: CmId;
  readonly device: Device;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly queuePair: QueuePair;
  /** Open to the peer for reading and writing, and a sink of Reads. */
  readonly memory: MemoryRegion;

  constructor(id: CmId, options: EndpointOptions = {}) {
    if (id.device === undefined) throw new Error('the id has no device yet');
    this.id = id;
    // A device of its own, so that closing it closes everything of this end and nothing of the other.
    this.device = Device.open(id.device.name);
    this.pd = new ProtectionDomain(this.device);
    this.cq = new CompletionQueue(this.device, { entries: 512, ...options.completionQueue });
    this.queuePair = id.createQueuePair(this.pd, {
      sendCompletionQueue: this.cq,
      receiveCompletionQueue: this.cq,
      ...options.queuePair,
    });
    this.memory = this.pd.allocateSync(options.memory ?? 65536, {
      access: ['remote-write', 'remote-read', 'read-sink'],
    });
    options.prepare?.(this);
  }

  receive(length = 4096, offset = 0) {
    return this.queuePair.submit({ opcode: 'receive', sges: [{ region: this.memory, offset, length }] });
  }

  send(length: number, offset = 0) {
    return this.queuePair.submit({ opcode: 'send', sges: [{ region: this.memory, offset, length }] });
  }

  async close(): Promise<void> {
    await this.id.close();
    await this.device.close();
  }
}

/** A listener on a port that the kernel chose, and its event channel. */
export class Listener {
  readonly channel = new EventChannel();
  readonly id = new CmId(this.channel);
  readonly destination: CmAddress;

  constructor({ address }: GuestDevice) {
    this.id.bind({ address, port: 0 });
    this.id.listen();
    this.destination = { address, port: this.id.info.localPort };
  }

  async request(): Promise<{ event: CmEvent; id: CmId }> {
    const [event, id] = (await once(this.id, 'connect-request')) as [CmEvent, CmId];
    return { event, id };
  }

  close(): Promise<void> {
    return this.channel.close();
  }
}

/** An id that is ready for a queue pair. */
export async function resolve(channel: EventChannel, destination: CmAddress): Promise<CmId> {
  const id = new CmId(channel);
  await id.resolveAddress(destination);
  await id.resolveRoute();
  return id;
}

export interface Pair {
  active: Endpoint;
  passive: Endpoint;
  close(): Promise<void>;
}

/** Connects this process to itself. */
export async function connectPair(device: GuestDevice, options: PairOptions = {}): Promise<Pair> {
  const listener = new Listener(device);
  const accepted = listener.request().then(async ({ id }) => {
    const passive = new Endpoint(id, options.passive);
    const established = once(id, 'established');
    id.accept(options.accept ?? {});
    await established;
    return passive;
  });
  const id = await resolve(listener.channel, listener.destination);
  const active = new Endpoint(id, options.active);
  const established = once(id, 'established');
  await id.connect(options.connect ?? {});
  await established;
  const passive = await accepted;
  return {
    active,
    passive,
    async close() {
      await active.close();
      await passive.close();
      await listener.close();
    },
  };
}
