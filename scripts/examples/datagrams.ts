import type { CmId } from 'node-rdma/cm';
import {
  CompletionQueue,
  type CompletionResult,
  type DatagramDestination,
  type DatagramSource,
  Device,
  grhLength,
  type MemoryRegion,
  ProtectionDomain,
  type QueuePair,
} from 'node-rdma/verbs';

export interface Datagram {
  data: Uint8Array;
  /** The memory that it was received into, header and data: with `source` it leads back to the sender. */
  message: Uint8Array;
  source: DatagramSource;
  immediate: number | undefined;
}

/** What an id in the port space of datagrams needs to send and to receive. */
export class Datagrams {
  readonly pd: ProtectionDomain;
  readonly queuePair: QueuePair;
  readonly #device: Device;
  readonly #size: number;
  readonly #memory: MemoryRegion;

  /** For datagrams of up to `size` bytes, `depth` at a time each way. */
  constructor(id: CmId, size: number, depth: number) {
    if (id.device === undefined) throw new Error('the id has no device yet');
    this.#device = Device.open(id.device.name);
    this.pd = new ProtectionDomain(this.#device);
    const cq = new CompletionQueue(this.#device, { entries: 2 * depth });
    this.queuePair = id.createQueuePair(this.pd, {
      type: 'UD',
      sendCompletionQueue: cq,
      receiveCompletionQueue: cq,
      maxSendRequests: depth,
      maxReceiveRequests: depth,
    });
    // The last place is for what is sent.
    this.#size = grhLength + size;
    this.#memory = this.pd.allocateSync((depth + 1) * this.#size);
  }

  /** Takes the next `count` datagrams; each has a place of its own, so no more than the depth at a time. */
  receive(count: number): Promise<Datagram>[] {
    return Array.from({ length: count }, async (_, place) => {
      const offset = place * this.#size;
      const result = await this.queuePair.submit({
        opcode: 'receive',
        sges: [{ region: this.#memory, offset, length: this.#size }],
      });
      return this.#datagram(result, offset);
    });
  }

  #datagram({ byteLength, source, immediate }: CompletionResult, offset: number): Datagram {
    const message = this.#memory.bytes.slice(offset, offset + byteLength);
    return {
      message,
      data: message.subarray(grhLength),
      source: source!,
      immediate,
    };
  }

  /** Sends the same `count` times, with the number of this queue pair as immediate data. */
  async send(data: Uint8Array, count: number, destination: DatagramDestination): Promise<void> {
    const offset = this.#memory.length - this.#size;
    this.#memory.bytes.set(data, offset);
    const sges = [{ region: this.#memory, offset, length: data.length }];
    const immediate = this.queuePair.number;
    await Promise.all(
      Array.from({ length: count }, () =>
        this.queuePair.submit({ opcode: 'sendWithImmediate', sges, immediate, destination }),
      ),
    );
  }

  close(): Promise<void> {
    return this.#device.close();
  }
}
