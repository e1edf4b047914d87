import { once } from 'node:events';
import { type CmEvent, CmId, EventChannel } from 'node-rdma/cm';
import {
  CompletionQueue,
  Device,
  type MemoryRegion,
  opcodes,
  ProtectionDomain,
  type QueuePair,
  RemoteMemory,
  type RequestRing,
  requestFlags,
  rings,
  type Waiting,
  type WorkCompletion,
} from 'node-rdma/verbs';

export interface RingOptions {
  readonly waiting: Waiting;
  /** Requests that the send queue holds. */
  readonly sendDepth: number;
  readonly receiveDepth: number;
  /** Bytes of registered memory. */
  readonly memory: number;
}

/** The peer's memory, whose key comes as private data: a part of it, as the ring takes it. */
export interface RemotePart {
  readonly low: number;
  readonly high: number;
  readonly rkey: number;
}

/** One end of a connection on the bare rings: a device, a domain, a queue and one region, and nothing per message. */
export class RingEndpoint {
  readonly id: CmId;
  readonly memory: MemoryRegion;
  readonly bytes: Uint8Array;
  readonly cq: CompletionQueue;
  readonly queuePair: QueuePair;
  /** The peer has ended the connection. */
  readonly disconnected: Promise<unknown>;
  readonly #device: Device;
  readonly #requests: RequestRing = rings().requests;
  readonly #handle: number;
  readonly #region: number;
  remote: RemotePart = { low: 0, high: 0, rkey: 0 };
  /** Takes every completion. */
  onCompletion: (completion: WorkCompletion) => void = () => {};

  constructor(id: CmId, options: RingOptions) {
    this.id = id;
    this.#device = Device.open(id.device!.name);
    const pd = new ProtectionDomain(this.#device);
    const { sendDepth, receiveDepth, waiting } = options;
    this.cq = new CompletionQueue(this.#device, {
      entries: sendDepth + receiveDepth,
      waiting,
      onCompletion: (completion) => this.onCompletion(completion),
    });
    this.queuePair = id.createQueuePair(pd, {
      sendCompletionQueue: this.cq,
      receiveCompletionQueue: this.cq,
      maxSendRequests: sendDepth,
      maxReceiveRequests: receiveDepth,
    });
    this.memory = pd.allocateSync(options.memory, { access: ['remote-write', 'remote-read', 'read-sink'] });
    this.bytes = this.memory.bytes;
    this.disconnected = once(id, 'disconnected');
    this.#handle = this.queuePair.handle;
    this.#region = this.memory.handle;
  }

  /** Depth of Reads that the device has, for both sides. */
  get readDepth(): number {
    return Math.min(this.#device.attributes.maxQpInitRdAtom, this.#device.attributes.maxQpRdAtom, 128);
  }

  /** What tells the peer of this end's memory. */
  get privateData(): Uint8Array {
    return this.memory.remote().toBytes();
  }

  learnRemote(event: CmEvent): void {
    const { addressLow, addressHigh, rkey } = RemoteMemory.fromBytes(event.privateData);
    this.remote = { low: addressLow, high: addressHigh, rkey };
  }

  postReceive(slot: number, offset: number, length: number): void {
    const { receive } = opcodes;
    this.#requests.submit(
      this.#handle,
      receive,
      requestFlags.signaled,
      slot,
      0,
      this.#region,
      offset,
      length,
    );
  }

  /** `signaled`: whether its completion is delivered. */
  postSend(signaled: boolean, slot: number, offset: number, length: number): void {
    const flags = signaled ? requestFlags.signaled : 0;
    this.#requests.submit(this.#handle, opcodes.send, flags, slot, 0, this.#region, offset, length);
  }

  /** A Write to, or a Read from, the beginning of the peer's memory. */
  postRemote(opcode: number, signaled: boolean, slot: number, offset: number, length: number): void {
    const { low, high, rkey } = this.remote;
    const flags = signaled ? requestFlags.signaled : 0;
    this.#requests.submit(
      this.#handle,
      opcode,
      flags,
      slot,
      0,
      this.#region,
      offset,
      length,
      low,
      high,
      rkey,
    );
  }

  flush(): void {
    this.#requests.flush();
  }

  async close(): Promise<void> {
    await this.id.close();
    await this.#device.close();
  }
}

/** Listens, tells the port, and brings up the one connection that comes. `prepare` posts the receives. */
export async function acceptRing(
  address: string,
  options: RingOptions,
  listening: (port: number) => void,
  prepare: (endpoint: RingEndpoint) => void = () => {},
): Promise<RingEndpoint> {
  const channel = new EventChannel();
  const listener = new CmId(channel);
  listener.bind({ address, port: 0 });
  listener.listen();
  listening(listener.info.localPort);
  const [event, id] = (await once(listener, 'connect-request')) as [CmEvent, CmId];
  const endpoint = new RingEndpoint(id, options);
  endpoint.learnRemote(event);
  prepare(endpoint);
  endpoint.flush();
  const established = once(id, 'established');
  const { privateData, readDepth } = endpoint;
  id.accept({ responderResources: readDepth, initiatorDepth: readDepth, privateData });
  await established;
  await listener.close();
  return endpoint;
}

export async function connectRing(
  address: string,
  port: number,
  options: RingOptions,
  prepare: (endpoint: RingEndpoint) => void = () => {},
): Promise<RingEndpoint> {
  const id = new CmId(new EventChannel());
  await id.resolveAddress({ address, port });
  await id.resolveRoute();
  const endpoint = new RingEndpoint(id, options);
  prepare(endpoint);
  endpoint.flush();
  const established = once(id, 'established') as Promise<[CmEvent]>;
  const { privateData, readDepth } = endpoint;
  await id.connect({ responderResources: readDepth, initiatorDepth: readDepth, privateData });
  const [event] = await established;
  endpoint.learnRemote(event);
  return endpoint;
}

/** Ends a connection and all that belongs to it. */
export async function closeRing(endpoint: RingEndpoint): Promise<void> {
  const { channel } = endpoint.id;
  try {
    endpoint.id.disconnect();
  } catch {
    // The peer was faster.
  }
  await endpoint.close();
  await channel.close();
}
