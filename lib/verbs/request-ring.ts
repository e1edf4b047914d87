import { useBinding } from '../binding/addon.js';
import type { Native } from '../binding/native.js';
import { requireInteger } from '../errors.js';

/** One scatter/gather element as the ring takes it: a region by its handle, never an address. */
export interface RingSge {
  region: number;
  offset: number;
  length: number;
}

const u32 = 0x1_0000_0000;

/**
 * The submission ring of this environment. A record is filled in place and posted when the running completion
 * callback returns, with all others of its queue pair as one chain; outside a callback at the end of the turn, or
 * by `flush()`. The native side copies and checks each record: a request that it refuses comes back as a completion
 * with status `POST_FAILED`.
 */
export class RequestRing {
  readonly #native: Native;
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;
  readonly #control: Uint32Array;
  readonly #at: Native['layout']['workRequest'];
  readonly #head: number;
  readonly #tail: number;
  readonly #inCallback: number;
  readonly #capacity: number;
  #scheduled = false;

  constructor() {
    const { native, rings } = useBinding();
    this.#native = native;
    this.#words = new Uint32Array(rings.requests);
    this.#bytes = new Uint8Array(rings.requests);
    this.#control = new Uint32Array(rings.control);
    this.#at = native.layout.workRequest;
    this.#head = native.layout.control.requestHead >> 2;
    this.#tail = native.layout.control.requestTail >> 2;
    this.#inCallback = native.layout.control.inCallback >> 2;
    this.#capacity = rings.requests.byteLength / this.#at.size;
  }

  /** Most gather elements that one request can have: the ring's limit, the device's is `maxSge`. */
  static readonly maxSges = 16;

  /**
   * Adds a request. `opcode` is a value of `opcodes`, `flags` of `requestFlags`; `remoteAddress` is split in halves
   * so that no BigInt is made. `sges` beyond the first go into continuation records.
   */
  submit(
    queuePair: number,
    opcode: number,
    flags: number,
    slot: number,
    generation: number,
    region: number,
    offset: number,
    length: number,
    remoteLow = 0,
    remoteHigh = 0,
    rkey = 0,
    immediate = 0,
    more?: readonly RingSge[],
    compareAdd?: bigint,
    swap?: bigint,
  ): void {
    const sges = region === 0 ? 0 : 1 + (more?.length ?? 0);
    if (more !== undefined) requireInteger('sges.length', sges, 0, RequestRing.maxSges);
    const records = 1 + (sges > 1 ? Math.ceil((sges - 1) / 4) : 0);
    const control = this.#control;
    if (((control[this.#head]! - control[this.#tail]!) >>> 0) + records > this.#capacity) this.flush();

    const head = control[this.#head]!;
    const at = this.#at;
    const byte = (head % this.#capacity) * at.size;
    const words = this.#words;
    words[(byte + at.queuePair) >> 2] = queuePair;
    this.#bytes[byte + at.opcode] = opcode;
    this.#bytes[byte + at.flags] = flags;
    this.#bytes[byte + at.sgeCount] = sges;
    words[(byte + at.slot) >> 2] = slot;
    words[(byte + at.generation) >> 2] = generation;
    words[(byte + at.region) >> 2] = region;
    words[(byte + at.length) >> 2] = length;
    words[(byte + at.offset) >> 2] = offset;
    words[(byte + at.offset + 4) >> 2] = offset / u32;
    words[(byte + at.remoteAddress) >> 2] = remoteLow;
    words[(byte + at.remoteAddress + 4) >> 2] = remoteHigh;
    words[(byte + at.rkey) >> 2] = rkey;
    words[(byte + at.immediate) >> 2] = immediate;
    if (compareAdd !== undefined) this.#u64(byte + at.compareAdd, compareAdd);
    if (swap !== undefined) this.#u64(byte + at.swap, swap);
    if (records > 1) this.#continue(head + 1, more!);
    control[this.#head] = head + records;
    this.#schedule();
  }

  /** Posts what was submitted. */
  flush(): void {
    this.#native.flush();
  }

  #u64(byte: number, value: bigint): void {
    this.#words[byte >> 2] = Number(value & 0xffff_ffffn);
    this.#words[(byte + 4) >> 2] = Number((value >> 32n) & 0xffff_ffffn);
  }

  #continue(head: number, sges: readonly RingSge[]): void {
    sges.forEach((sge, i) => {
      const byte = (((head + (i >> 2)) >>> 0) % this.#capacity) * this.#at.size + (i & 3) * 16;
      const word = byte >> 2;
      this.#words[word] = sge.region;
      this.#words[word + 1] = sge.length;
      this.#words[word + 2] = sge.offset;
      this.#words[word + 3] = sge.offset / u32;
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#control[this.#inCallback] !== 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
}
