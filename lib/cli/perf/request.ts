/** What is measured: messages both ways or one way, or RDMA Writes or Reads of the server's memory. */
export const operations = ['send', 'write', 'read'] as const;
export type Operation = (typeof operations)[number];

/** What a client asks a server for: the private data of its request to connect. */
export interface PerfRequest {
  readonly operation: Operation;
  /** Whether the server answers each message: a measurement of latency. */
  readonly echo: boolean;
  /** Bytes of a message, Write or Read. */
  readonly size: number;
  /** Messages, Writes or Reads on their way at once. */
  readonly depth: number;
}

export const defaultPort = 7475;
export const sizeLimits = { minimum: 1, maximum: 16 * 2 ** 20 } as const;
export const depthLimits = { minimum: 1, maximum: 1024 } as const;

const magic = 'perf1';
const length = magic.length + 8;

export function encodeRequest({ operation, echo, size, depth }: PerfRequest): Uint8Array {
  const bytes = Buffer.alloc(length);
  bytes.write(magic, 'latin1');
  bytes.writeUInt8(operations.indexOf(operation), magic.length);
  bytes.writeUInt8(Number(echo), magic.length + 1);
  bytes.writeUInt32BE(size, magic.length + 2);
  bytes.writeUInt16BE(depth, magic.length + 6);
  return bytes;
}

/** @returns null for what no client of this program sends */
export function decodeRequest(bytes: Buffer): PerfRequest | null {
  if (bytes.length < length || bytes.toString('latin1', 0, magic.length) !== magic) return null;
  const operation = operations[bytes.readUInt8(magic.length)];
  const size = bytes.readUInt32BE(magic.length + 2);
  const depth = bytes.readUInt16BE(magic.length + 6);
  const within = (value: number, { minimum, maximum }: { minimum: number; maximum: number }) =>
    value >= minimum && value <= maximum;
  if (operation === undefined || !within(size, sizeLimits) || !within(depth, depthLimits)) return null;
  return { operation, echo: bytes.readUInt8(magic.length + 1) !== 0, size, depth };
}

/** Options of both ends' connections: room for what the request asks for, and for the 20 bytes of the server's answer. */
export function connectionOptions({ size, depth }: PerfRequest) {
  return {
    sendDepth: depth + 2,
    receiveDepth: Math.min(depth, 64) + 2,
    maxMessageSize: Math.max(size, 64),
    highWaterMark: Number.MAX_SAFE_INTEGER,
  };
}
