import { CmId, type EventChannel } from 'node-rdma/cm';
import {
  CompletionQueue,
  type Device,
  type MemoryRegion,
  ProtectionDomain,
  type QueuePair,
  rings,
} from 'node-rdma/verbs';
import { greeting } from './news.js';

/** What all connections of one side share. */
export class PlainContext {
  readonly memory: MemoryRegion;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;

  constructor(device: Device) {
    this.#pd = new ProtectionDomain(device);
    this.#cq = new CompletionQueue(device, { entries: 1024 });
    this.memory = this.#pd.allocateSync(2 * greeting.length);
    this.memory.bytes.set(greeting);
  }

  createQueuePair(id: CmId): QueuePair {
    return id.createQueuePair(this.#pd, {
      sendCompletionQueue: this.#cq,
      receiveCompletionQueue: this.#cq,
      maxSendRequests: 4,
      maxReceiveRequests: 4,
    });
  }

  /** Accepts, and posts the greeting to the device as soon as `rdma_accept()` has returned. */
  acceptAndGreet(id: CmId, queuePair: QueuePair): Promise<unknown> {
    const sges = [{ region: this.memory, length: greeting.length }];
    id.accept();
    const sent = queuePair.submit({ opcode: 'send', sges });
    // Not at the end of this turn: now.
    rings().requests.flush();
    return sent;
  }

  /** Posts a receive, and resolves with whether it got the greeting. */
  async receive(queuePair: QueuePair): Promise<boolean> {
    const sges = [{ region: this.memory, offset: greeting.length, length: greeting.length }];
    const { byteLength } = await queuePair.submit({ opcode: 'receive', sges });
    return greeting.equals(this.memory.bytes.subarray(greeting.length, greeting.length + byteLength));
  }

  async close(): Promise<void> {
    await this.#pd.close();
    await this.#cq.close();
  }
}

/** An id with a device and a route. */
export async function resolveId(channel: EventChannel, address: string, port: number): Promise<CmId> {
  const id = new CmId(channel);
  await id.resolveAddress({ address, port });
  await id.resolveRoute();
  return id;
}
