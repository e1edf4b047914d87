import { type Connection, type MemoryRegion, RemoteMemory } from '../../index.js';

/**
 * What rping's two ends say to one another (rdma-core, librdmacm/examples/rping.c): the client tells where its text
 * is, the server reads it and gives the word; the client tells where it wants the text, the server writes it there and
 * gives the word. Each message has 16 bytes; the server's are not looked into.
 */
export const messageLength = 16;

/** The port of C's rping. */
export const defaultPort = 7174;

/** Bytes of text that C's rping takes, its terminating zero included. */
export const textLimits = { minimum: 26, maximum: 64 * 1024 - 1 } as const;

/** Two messages on their way are all that rping ever has; C's own servers expect depths of 1 for Reads. */
export const queues = { sendDepth: 16, receiveDepth: 16, responderResources: 1, initiatorDepth: 1 } as const;

/** A place in the client's memory: `{ be64 address, be32 rkey, be32 length }`. */
function encodePlace({ address, rkey, length }: RemoteMemory): Uint8Array {
  const message = Buffer.alloc(messageLength);
  message.writeBigUInt64BE(address, 0);
  message.writeUInt32BE(rkey, 8);
  message.writeUInt32BE(length, 12);
  return message;
}

function decodePlace(message: Buffer): RemoteMemory {
  if (message.length !== messageLength) throw new Error(`${message.length} bytes are no message of rping's`);
  return new RemoteMemory(message.readBigUInt64BE(0), message.readUInt32BE(8), message.readUInt32BE(12));
}

/** `rdma-ping-N: ` and letters, `size` bytes with the terminating zero, as C's rping makes it. */
function textOf(number: number, size: number): Buffer {
  const text = Buffer.alloc(size);
  const prefix = `rdma-ping-${number}: `;
  const letters = 58; // 'A' to 'z', as C's rping takes them
  for (let i = prefix.length; i < size - 1; i++) text[i] = 65 + ((number + i - prefix.length) % letters);
  text.write(prefix, 0, size - 1, 'latin1');
  return text;
}

function untilZero(text: Uint8Array): string {
  const end = text.indexOf(0);
  return Buffer.from(text.subarray(0, end < 0 ? text.length : end)).toString('latin1');
}

/** The client's end. */
export class Pinger {
  readonly #connection: Connection;
  readonly #source: MemoryRegion;
  readonly #sink: MemoryRegion;
  readonly #size: number;

  private constructor(connection: Connection, source: MemoryRegion, sink: MemoryRegion, size: number) {
    this.#connection = connection;
    this.#source = source;
    this.#sink = sink;
    this.#size = size;
  }

  /** @param size of each text in bytes, its terminating zero included: {@link textLimits} */
  static async open(connection: Connection, size: number): Promise<Pinger> {
    await connection.established;
    const source = await connection.allocate(size, { access: ['remote-read'] });
    const sink = await connection.allocate(size, { access: ['remote-write'] });
    return new Pinger(connection, source, sink, size);
  }

  /**
   * One ping.
   *
   * @param timeout milliseconds that each of the server's two answers may take
   * @returns its text, which has come back unchanged
   */
  async ping(number: number, timeout: number): Promise<string> {
    this.#source.bytes.set(textOf(number, this.#size));
    this.#sink.bytes.fill(0);
    for (const region of [this.#source, this.#sink]) {
      await this.#connection.send(encodePlace(region.remote()));
      const goAhead = await this.#connection.receive({ timeout });
      if (goAhead === null) throw new Error('the server has closed the connection');
    }
    if (Buffer.compare(this.#source.bytes, this.#sink.bytes) !== 0)
      throw new Error(`ping ${number} came back changed: ${untilZero(this.#sink.bytes)}`);
    return untilZero(this.#sink.bytes);
  }
}

/** The server's end: answers pings until the client disconnects; returns how many. */
export async function answerPings(connection: Connection, onPing: (text: string) => void): Promise<number> {
  const goAhead = new Uint8Array(messageLength);
  for (let count = 0; ; count++) {
    const source = await connection.receive();
    if (source === null) return count;
    const text = untilZero(await connection.read(decodePlace(source)));
    onPing(text);
    await connection.send(goAhead);
    const sink = await connection.receive();
    if (sink === null) throw new Error('the client has left in the middle of a ping');
    const echo = Buffer.from(`${text}\0`, 'latin1');
    // No wait between the two: a message implies that the writes before it are in place.
    await Promise.all([connection.write(decodePlace(sink), echo), connection.send(goAhead)]);
  }
}
