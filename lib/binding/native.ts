import type { NativeCm, NativeCmEvent } from './cm.js';
import type { NativeJob } from './job.js';
import type { NativeMemory } from './memory.js';
import type { NativeVerbs } from './verbs.js';

/** What the addon calls. All run on the thread of the environment that called `initialize`. */
export interface NativeHooks {
  /** Makes the error of a failed C call; the addon throws, or rejects with, what it returns. */
  createError(errno: number, syscall: string): Error;
  /** Completions `first` to `first + count - 1` of the completion ring belong to `cq`. */
  onCompletions(cq: number, first: number, count: number): void;
  onCmEvent(event: NativeCmEvent): void;
  /** `ibv_async_event`: `object` is the handle of the queue concerned, else 0. */
  onAsyncEvent(type: number, device: number, object: number, port: number): void;
}

/** Byte offsets and sizes as the C++ compiler laid the records out: `native/ring/records.h`. */
export interface RecordLayout {
  workRequest: Record<
    | 'size'
    | 'queuePair'
    | 'opcode'
    | 'flags'
    | 'sgeCount'
    | 'slot'
    | 'generation'
    | 'region'
    | 'length'
    | 'offset'
    | 'remoteAddress'
    | 'rkey'
    | 'immediate'
    | 'compareAdd'
    | 'swap',
    number
  >;
  workCompletion: Record<
    | 'size'
    | 'slot'
    | 'generation'
    | 'status'
    | 'opcode'
    | 'flags'
    | 'byteLength'
    | 'queuePair'
    | 'vendorError'
    | 'immediate'
    | 'sourceQp'
    | 'sourceLid'
    | 'serviceLevel'
    | 'pathBits'
    | 'pkeyIndex'
    | 'timestamp'
    | 'wallclock',
    number
  >;
  control: Record<
    'size' | 'requestHead' | 'requestTail' | 'inCallback' | 'completionsConsumed' | 'completionsInUse',
    number
  >;
}

export interface NativeRings {
  /** Work requests that JavaScript submits: a power of two of records. */
  requests: ArrayBuffer;
  /** Completions that JavaScript reads in place during `onCompletions`. */
  completions: ArrayBuffer;
  /** Indices of both rings, u32 each. */
  control: ArrayBuffer;
}

/** The addon. Every function checks every argument and throws; none can be made to crash. */
export interface Native extends NativeCm, NativeJob, NativeMemory, NativeVerbs {
  readonly layout: RecordLayout;
  /** Once per environment, before anything else. */
  initialize(hooks: NativeHooks): NativeRings;
  /** Posts the work requests between tail and head of the request ring. */
  flush(): void;
  /** Counts of live native objects by kind: for tests and diagnostics. */
  objectCounts(): Record<string, number>;
}
