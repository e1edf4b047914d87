import { inspect } from 'node:util';
import { invalidArgumentType, invalidArgumentValue, requireInteger } from '../errors.js';

/**
 * A piece of a peer's memory that it lets this side read or write: what `read()`, `write()` and atomics take. It
 * serialises to {@link RemoteMemory.byteLength} bytes that any message can carry, or to JSON.
 */
export class RemoteMemory {
  /** Size of the serialised form: address (8), length (8), rkey (4), all big-endian. */
  static readonly byteLength = 20;

  /** Virtual address at the peer. */
  readonly address: bigint;
  /** Remote key of the peer's region. */
  readonly rkey: number;
  /** Bytes. */
  readonly length: number;
  /** The halves of the address, for the submission ring. */
  readonly addressLow: number;
  readonly addressHigh: number;

  constructor(address: bigint, rkey: number, length: number) {
    if (typeof address !== 'bigint') throw invalidArgumentType('address', 'a bigint', address);
    this.address = BigInt.asUintN(64, address);
    this.rkey = requireInteger('rkey', rkey, 0, 0xffff_ffff);
    this.length = requireInteger('length', length, 0, Number.MAX_SAFE_INTEGER);
    this.addressLow = Number(this.address & 0xffff_ffffn);
    this.addressHigh = Number(this.address >> 32n);
  }

  /** A part of it; `length` defaults to all that follows `offset`. Throws a RangeError outside. */
  slice(offset: number, length?: number): RemoteMemory {
    requireInteger('offset', offset, 0, this.length);
    const rest = this.length - offset;
    const taken = length === undefined ? rest : requireInteger('length', length, 0, rest);
    return new RemoteMemory(this.address + BigInt(offset), this.rkey, taken);
  }

  /** {@link RemoteMemory.byteLength} bytes for a message. */
  toBytes(): Uint8Array {
    const bytes = new Uint8Array(RemoteMemory.byteLength);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, this.address);
    view.setBigUint64(8, BigInt(this.length));
    view.setUint32(16, this.rkey);
    return bytes;
  }

  /** Reads what `toBytes()` has written; what follows it is left alone. Throws a RangeError for fewer bytes. */
  static fromBytes(bytes: Uint8Array): RemoteMemory {
    if (!(bytes instanceof Uint8Array)) throw invalidArgumentType('bytes', 'a Uint8Array', bytes);
    requireInteger('bytes.length', bytes.length, RemoteMemory.byteLength, Number.MAX_SAFE_INTEGER);
    const view = new DataView(bytes.buffer, bytes.byteOffset, RemoteMemory.byteLength);
    return new RemoteMemory(view.getBigUint64(0), view.getUint32(16), Number(view.getBigUint64(8)));
  }

  /** The address as a decimal string: JSON has no numbers of 64 bits. */
  toJSON(): { address: string; rkey: number; length: number } {
    return { address: this.address.toString(), rkey: this.rkey, length: this.length };
  }

  /** Reads what `toJSON()` has made. Throws a TypeError for anything else. */
  static fromJSON(json: { address: string; rkey: number; length: number }): RemoteMemory {
    if (typeof json !== 'object' || json === null) throw invalidArgumentType('json', 'an object', json);
    const { address, rkey, length } = json;
    if (typeof address !== 'string') throw invalidArgumentType('json.address', 'a string', address);
    if (!/^\d{1,20}$/.test(address)) {
      throw invalidArgumentValue('json.address', address, 'must be a decimal number');
    }
    return new RemoteMemory(BigInt(address), rkey, length);
  }

  [inspect.custom](_depth: number, options: object): string {
    const address = `0x${this.address.toString(16)}`;
    return `RemoteMemory ${inspect({ address, rkey: this.rkey, length: this.length }, options)}`;
  }
}
