import { useBinding } from '../binding/addon.js';
import { errnoName, RdmaError, WorkCompletionError } from '../errors.js';
import { completionFlags, opcodeName } from './opcode.js';
import { statusName } from './status.js';

/** Where a datagram came from: what `ibv_init_ah_from_wc(3)` makes the way back of. */
export interface DatagramSource {
  /** The sender's queue pair number. */
  queuePairNumber: number;
  /** InfiniBand: the sender's LID. */
  sourceLid: number;
  serviceLevel: number;
  /** InfiniBand: low bits of the LID that it was sent to. */
  pathBits: number;
  pkeyIndex: number;
  /** Whether the 40 bytes before the message are a global routing header; on RoCE they always are. */
  routed: boolean;
}

/** What is kept of a completion after its callback. */
export interface CompletionResult {
  /**
   * Bytes received, read or fetched; 0 for a send. For a datagram this counts the 40 bytes before it, which the receive
   * needs room for whether they are used or not (`ibv_post_recv(3)`).
   */
  byteLength: number;
  /** Of a datagram. */
  source?: DatagramSource;
  /** Of an extended completion queue with the field `timestamp`: when the device completed it, in its own clock. */
  timestamp?: bigint;
  /** Of one with the field `wallclock`: the same in nanoseconds since 1970. */
  wallclock?: bigint;
  /** The 32 bits of immediate data, if the message carried any. */
  immediate?: number;
  /** The remote key that the peer invalidated with this message, if it did. */
  invalidatedRkey?: number;
}

/**
 * A window on one record of the completion ring. There is one per environment and it moves: what it shows is
 * valid only during the callback that it was passed to.
 */
export class WorkCompletion {
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;
  /** Words of a record, and where its fields are: in words, or in bytes for those that are bytes. */
  readonly #size: number;
  readonly #slot: number;
  readonly #generation: number;
  readonly #status: number;
  readonly #opcode: number;
  readonly #flags: number;
  readonly #byteLength: number;
  readonly #queuePair: number;
  readonly #vendorError: number;
  readonly #immediate: number;
  readonly #sourceQp: number;
  /** The record that it shows, in words. */
  #base = 0;

  constructor() {
    const { native, rings } = useBinding();
    const at = native.layout.workCompletion;
    this.#words = new Uint32Array(rings.completions);
    this.#bytes = new Uint8Array(rings.completions);
    this.#size = at.size >> 2;
    this.#slot = at.slot >> 2;
    this.#generation = at.generation >> 2;
    this.#status = at.status;
    this.#opcode = at.opcode;
    this.#flags = at.flags;
    this.#byteLength = at.byteLength >> 2;
    this.#queuePair = at.queuePair >> 2;
    this.#vendorError = at.vendorError >> 2;
    this.#immediate = at.immediate >> 2;
    this.#sourceQp = at.sourceQp >> 2;
  }

  /** Moves the window to a record of the ring. */
  moveTo(index: number): void {
    this.#base = index * this.#size;
  }

  #word(field: number): number {
    return this.#words[this.#base + field]!;
  }

  #byte(field: number): number {
    return this.#bytes[(this.#base << 2) + field]!;
  }

  /** First half of the `wr_id`: the slot that the request was posted with. */
  get slot(): number {
    return this.#word(this.#slot);
  }

  /** Second half of the `wr_id`. */
  get generation(): number {
    return this.#word(this.#generation);
  }

  /** `ibv_wc_status`, 0 for success. */
  get status(): number {
    return this.#byte(this.#status);
  }

  get ok(): boolean {
    return this.#byte(this.#status) === 0;
  }

  /** The operation that was posted, known also when it failed: a value of {@link opcodes}. */
  get opcode(): number {
    return this.#byte(this.#opcode);
  }

  /** Bytes received, for a receive. */
  get byteLength(): number {
    return this.#word(this.#byteLength);
  }

  /** Handle of the queue pair. */
  get queuePair(): number {
    return this.#word(this.#queuePair);
  }

  get vendorError(): number {
    return this.#word(this.#vendorError);
  }

  /** `ibv_wc_flags`. */
  get flags(): number {
    return this.#byte(this.#flags);
  }

  /** Immediate data in host byte order, or the invalidated rkey: see `flags`. */
  get immediate(): number {
    return this.#word(this.#immediate);
  }

  /** The sender's queue pair number, for UD. */
  get sourceQp(): number {
    return this.#word(this.#sourceQp);
  }

  #u16(field: string): number {
    const byte = this.#base + this.#at[field]!;
    return this.#bytes[byte]! | (this.#bytes[byte + 1]! << 8);
  }

  #u64(field: string): bigint {
    const word = (this.#base + this.#at[field]!) >> 2;
    return BigInt(this.#words[word]!) | (BigInt(this.#words[word + 1]!) << 32n);
  }

  /** Of an extended completion queue with that field: when it completed, in the device's own clock; else 0. */
  get timestamp(): bigint {
    return this.#u64('timestamp');
  }

  /** Of an extended completion queue with that field: when it completed, nanoseconds since 1970; else 0. */
  get wallclock(): bigint {
    return this.#u64('wallclock');
  }

  /** Where a datagram came from: meaningful when `flags` has `completionFlags.datagram`. */
  get source(): DatagramSource {
    return {
      queuePairNumber: this.sourceQp,
      sourceLid: this.#u16('sourceLid'),
      serviceLevel: this.#u8('serviceLevel'),
      pathBits: this.#u8('pathBits'),
      pkeyIndex: this.#u16('pkeyIndex'),
      routed: (this.flags & completionFlags.grh) !== 0,
    };
  }

  /** Copies what outlives the callback. */
  result(): CompletionResult {
    const result: CompletionResult = { byteLength: this.byteLength };
    if ((this.flags & completionFlags.datagram) !== 0) result.source = this.source;
    const { timestamp, wallclock } = this;
    if (timestamp !== 0n) result.timestamp = timestamp;
    if (wallclock !== 0n) result.wallclock = wallclock;
    if ((this.flags & completionFlags.withImmediate) !== 0) result.immediate = this.immediate;
    if ((this.flags & completionFlags.withInvalidate) !== 0) result.invalidatedRkey = this.immediate;
    return result;
  }

  /** The error that a completion without success stands for. */
  error(): WorkCompletionError {
    const status = statusName(this.status);
    const cause =
      status === 'POST_FAILED'
        ? new RdmaError(
            errnoName(this.vendorError),
            `refused before the device saw it: ${errnoName(this.vendorError)}`,
            {
              errno: -this.vendorError,
              syscall: this.opcode === 128 ? 'ibv_post_recv' : 'ibv_post_send',
            },
          )
        : undefined;
    return new WorkCompletionError(
      status,
      opcodeName(this.opcode),
      this.vendorError,
      cause === undefined ? {} : { cause },
    );
  }
}
