import { createHash } from 'node:crypto';

/** What one side of one connection sends. */
export interface Script {
  connection: number;
  side: 'active' | 'passive';
  /** How many messages. */
  count: number;
  /** Bytes of the largest one. */
  largest: number;
}

const numberLength = 4;
const hashLength = 32;

/** Sizes from nothing to the largest, both included, in an order of their own for each connection. */
function sizeOf(script: Script, sequence: number): number {
  if (script.count === 1) return Math.min(script.largest, 64);
  const turn = (sequence * 7 + script.connection) % script.count;
  return Math.round((script.largest * turn) / (script.count - 1));
}

/**
 * A message as both sides can make it: its number, a hash of the rest, and content that follows from connection, side
 * and number, so that a message of another connection, or in another's place, is no right one.
 */
export function messageOf(script: Script, sequence: number): Buffer {
  const message = Buffer.alloc(sizeOf(script, sequence));
  const seed = createHash('sha256').update(`${script.connection} ${script.side} ${sequence}`).digest();
  for (let at = 0; at < message.length; at += seed.length) seed.copy(message, at);
  if (message.length >= numberLength + hashLength) {
    message.writeUInt32BE(sequence, 0);
    const hash = createHash('sha256')
      .update(message.subarray(numberLength + hashLength))
      .digest();
    hash.copy(message, numberLength);
  }
  return message;
}
