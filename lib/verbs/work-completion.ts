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
  /** In bytes. */
  readonly #sourceLid: number;
  readonly #serviceLevel: number;
  readonly #pathBits: number;
  readonly #pkeyIndex: number;
  readonly #timestamp: number;
  readonly #wallclock: number;
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
    this.#sourceLid = at.sourceLid;
    this.#serviceLevel = at.serviceLevel;
    this.#pathBits = at.pathBits;
    this.#pkeyIndex = at.pkeyIndex;
    this.#timestamp = at.timestamp >> 2;
    this.#wallclock = at.wallclock >> 2;
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

  #halfWord(field: number): number {
    return this.#byte(field) | (this.#byte(field + 1) << 8);
  }

  #doubleWord(field: number): bigint {
    return BigInt(this.#word(field)) | (BigInt(this.#word(field + 1)) << 32n);
  }

  #isGiven(field: number): boolean {
    return (this.#word(field) | this.#word(field + 1)) !== 0;
  }

  /** Of an extended completion queue with that field: when it completed, in the device's own clock; else 0. */
  get timestamp(): bigint {
    return this.#doubleWord(this.#timestamp);
  }

  /** Of an extended completion queue with that field: when it completed, nanoseconds since 1970; else 0. */
  get wallclock(): bigint {
    return this.#doubleWord(this.#wallclock);
  }

  /** Where a datagram came from: meaningful when `flags` has `completionFlags.datagram`. */
  get source(): DatagramSource {
    return {
      queuePairNumber: this.sourceQp,
      sourceLid: this.#halfWord(this.#sourceLid),
      serviceLevel: this.#byte(this.#serviceLevel),
      pathBits: this.#byte(this.#pathBits),
      pkeyIndex: this.#halfWord(this.#pkeyIndex),
      routed: (this.flags & completionFlags.grh) !== 0,
    };
  }

  /** Copies what outlives the callback. */
  result(): CompletionResult {
    const result: CompletionResult = { byteLength: this.byteLength };
    if ((this.flags & completionFlags.datagram) !== 0) result.source = this.source;
    if (this.#isGiven(this.#timestamp)) result.timestamp = this.timestamp;
    if (this.#isGiven(this.#wallclock)) result.wallclock = this.wallclock;
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
