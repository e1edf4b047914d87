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
  /** Where the fields of a record are: in words, or in bytes for those that are bytes. */
  readonly #queuePair: number;
  readonly #opcode: number;
  readonly #flags: number;
  readonly #sgeCount: number;
  readonly #slot: number;
  readonly #generation: number;
  readonly #region: number;
  readonly #length: number;
  readonly #offset: number;
  readonly #remoteAddress: number;
  readonly #rkey: number;
  readonly #immediate: number;
  readonly #compareAdd: number;
  readonly #swap: number;
  /** Indices in `#control`. */
  readonly #head: number;
  readonly #tail: number;
  readonly #inCallback: number;
  /** Words of a record. */
  readonly #size: number;
  /** A power of two. */
  readonly #capacity: number;
  #scheduled = false;

  constructor() {
    const { native, rings } = useBinding();
    const { workRequest: at, control } = native.layout;
    this.#native = native;
    this.#words = new Uint32Array(rings.requests);
    this.#bytes = new Uint8Array(rings.requests);
    this.#control = new Uint32Array(rings.control);
    this.#queuePair = at.queuePair >> 2;
    this.#opcode = at.opcode;
    this.#flags = at.flags;
    this.#sgeCount = at.sgeCount;
    this.#slot = at.slot >> 2;
    this.#generation = at.generation >> 2;
    this.#region = at.region >> 2;
    this.#length = at.length >> 2;
    this.#offset = at.offset >> 2;
    this.#remoteAddress = at.remoteAddress >> 2;
    this.#rkey = at.rkey >> 2;
    this.#immediate = at.immediate >> 2;
    this.#compareAdd = at.compareAdd >> 2;
    this.#swap = at.swap >> 2;
    this.#head = control.requestHead >> 2;
    this.#tail = control.requestTail >> 2;
    this.#inCallback = control.inCallback >> 2;
    this.#size = at.size >> 2;
    this.#capacity = rings.requests.byteLength / at.size;
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
    const base = (head & (this.#capacity - 1)) * this.#size;
    const words = this.#words;
    const bytes = this.#bytes;
    words[base + this.#queuePair] = queuePair;
    bytes[(base << 2) + this.#opcode] = opcode;
    bytes[(base << 2) + this.#flags] = flags;
    bytes[(base << 2) + this.#sgeCount] = sges;
    words[base + this.#slot] = slot;
    words[base + this.#generation] = generation;
    words[base + this.#region] = region;
    words[base + this.#length] = length;
    words[base + this.#offset] = offset;
    words[base + this.#offset + 1] = offset / u32;
    words[base + this.#remoteAddress] = remoteLow;
    words[base + this.#remoteAddress + 1] = remoteHigh;
    words[base + this.#rkey] = rkey;
    words[base + this.#immediate] = immediate;
    if (compareAdd !== undefined) this.#u64(base + this.#compareAdd, compareAdd);
    if (swap !== undefined) this.#u64(base + this.#swap, swap);
    if (records > 1) this.#continue(head + 1, more!);
    control[this.#head] = head + records;
    this.#schedule();
  }

  /** Posts what was submitted. */
  flush(): void {
    this.#native.flush();
  }

  #u64(word: number, value: bigint): void {
    this.#words[word] = Number(value & 0xffff_ffffn);
    this.#words[word + 1] = Number((value >> 32n) & 0xffff_ffffn);
  }

  #continue(head: number, sges: readonly RingSge[]): void {
    sges.forEach((sge, i) => {
      const word = ((head + (i >> 2)) & (this.#capacity - 1)) * this.#size + (i & 3) * 4;
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
