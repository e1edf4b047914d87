import { RdmaError } from '../errors.js';
import {
  type CompletionHandler,
  type MemoryRegion,
  opcodes,
  type ProtectionDomain,
  requestFlags,
  rings,
  type WorkCompletion,
} from '../verbs/index.js';

/** Registered on the event loop's thread up to here, by a worker beyond: a thread's turn takes longer than this. */
const quicklyRegistered = 2 ** 20;

const alignment = 64;

/** One receive: a part of the region, posted or holding a message. */
export class ReceiveBuffer implements CompletionHandler {
  readonly #owner: ReceiveBuffers;
  readonly offset: number;

  constructor(owner: ReceiveBuffers, offset: number) {
    this.#owner = owner;
    this.offset = offset;
  }

  complete(completion: WorkCompletion): void {
    this.#owner.onCompletion(this, completion);
  }
}

/** The memory of a connection's receives, and their posting. */
export class ReceiveBuffers {
  readonly region: MemoryRegion;
  readonly #bytes: Buffer;
  readonly #length: number;
  readonly #buffers: readonly ReceiveBuffer[];
  #queuePair = 0;
  #closed = false;
  /** Takes the completion of a receive. */
  onCompletion: (buffer: ReceiveBuffer, completion: WorkCompletion) => void = () => {};

  /** Memory for `count` messages of `length` bytes. */
  static async create(pd: ProtectionDomain, count: number, length: number): Promise<ReceiveBuffers> {
    const stride = Math.ceil(length / alignment) * alignment;
    const total = stride * count;
    if (!Number.isSafeInteger(total)) throw new RdmaError('ENOMEM', `${count} receives of ${length} bytes`);
    const region = total <= quicklyRegistered ? pd.allocateSync(total) : await pd.allocate(total);
    return new ReceiveBuffers(region, count, length, stride);
  }

  private constructor(region: MemoryRegion, count: number, length: number, stride: number) {
    this.region = region;
    const { buffer, byteOffset } = region.bytes;
    this.#bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, region.length);
    this.#length = length;
    this.#buffers = Array.from({ length: count }, (_, i) => new ReceiveBuffer(this, i * stride));
  }

  get count(): number {
    return this.#buffers.length;
  }

  /** Posts them all to a queue pair, given by its handle. */
  postAll(queuePair: number): void {
    this.#queuePair = queuePair;
    for (const buffer of this.#buffers) this.post(buffer);
  }

  post(buffer: ReceiveBuffer): void {
    if (this.#closed) return;
    const { requests, slots } = rings();
    const slot = slots.acquire(buffer);
    const generation = slots.generation(slot);
    requests.submit(
      this.#queuePair,
      opcodes.receive,
      requestFlags.signaled,
      slot,
      generation,
      this.region.handle,
      buffer.offset,
      this.#length,
    );
  }

  /** Posts nothing from now on. What the buffers hold stays readable until the region is closed. */
  close(): void {
    this.#closed = true;
  }

  /** 32 bits at the beginning of a message. */
  prefix(buffer: ReceiveBuffer): number {
    return this.#bytes.readUInt32BE(buffer.offset);
  }

  /** The bytes where they are. */
  view(buffer: ReceiveBuffer, start: number, end: number): Buffer {
    return this.#bytes.subarray(buffer.offset + start, buffer.offset + end);
  }

  /** A copy with a buffer of its own. */
  copy(buffer: ReceiveBuffer, start: number, end: number): Buffer {
    const copy = Buffer.allocUnsafeSlow(end - start);
    this.#bytes.copy(copy, 0, buffer.offset + start, buffer.offset + end);
    return copy;
  }
}
