/**
 * What a rank says of itself when it asks another one for a connection, and what the other one says when it declines.
 * Both fit into the private data of every transport.
 */

export interface Introduction {
  /** The secret that the asked rank has published in the job: others can't get in. */
  readonly token: Uint8Array;
  readonly rank: number;
  /** How many connections the two have had before, as far as the asking one knows. */
  readonly generation: number;
}

export type Refusal = {
  /** `'superseded'`: the other one's own attempt is the one that counts. `'stale'`: it knows of a later generation. */
  readonly reason: 'superseded' | 'stale';
  readonly generation: number;
};

export const tokenLength = 8;

const requestMagic = 0x72616e6b;
const refusalMagic = 0x72616e4b;
const requestLength = 4 + tokenLength + 8;
const refusalLength = 9;
const reasons = ['superseded', 'stale'] as const;

export function encodeIntroduction({ token, rank, generation }: Introduction): Uint8Array {
  const bytes = Buffer.alloc(requestLength);
  bytes.writeUInt32BE(requestMagic, 0);
  bytes.set(token, 4);
  bytes.writeUInt32BE(rank, 4 + tokenLength);
  bytes.writeUInt32BE(generation, 8 + tokenLength);
  return bytes;
}

/** Null for what is none: the bytes come from anybody. */
export function decodeIntroduction(bytes: Buffer): Introduction | null {
  if (bytes.length < requestLength || bytes.readUInt32BE(0) !== requestMagic) return null;
  return {
    token: bytes.subarray(4, 4 + tokenLength),
    rank: bytes.readUInt32BE(4 + tokenLength),
    generation: bytes.readUInt32BE(8 + tokenLength),
  };
}

export function encodeRefusal({ reason, generation }: Refusal): Uint8Array {
  const bytes = Buffer.alloc(refusalLength);
  bytes.writeUInt32BE(refusalMagic, 0);
  bytes.writeUInt32BE(generation, 4);
  bytes.writeUInt8(reasons.indexOf(reason), 8);
  return bytes;
}

export function decodeRefusal(bytes: Uint8Array | undefined): Refusal | null {
  if (bytes === undefined || bytes.length < refusalLength) return null;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const reason = reasons[buffer.readUInt8(8)];
  if (buffer.readUInt32BE(0) !== refusalMagic || reason === undefined) return null;
  return { reason, generation: buffer.readUInt32BE(4) };
}
