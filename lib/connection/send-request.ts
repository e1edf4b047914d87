import type { CompletionHandler, MemoryRegion, WorkCompletion } from '../verbs/index.js';
import { opcodes } from '../verbs/index.js';
import type { StagingBuffer } from './staging.js';

/** Takes back the requests that have completed. */
export interface SendRequestOwner {
  requestCompleted(request: SendRequest, completion: WorkCompletion): void;
}

/** One work request of a send queue, from the call to its completion. They are used again and again. */
export class SendRequest implements CompletionHandler {
  readonly #owner: SendRequestOwner;
  opcode: number = opcodes.send;
  /** Bytes of the user's data. */
  length = 0;
  /** Where the data is until there is a device to copy it for. */
  copy: Uint8Array | undefined;
  /** Where the data was copied to, or will be read to. */
  staging: StagingBuffer | undefined;
  /** The region that the data lies in, if it is borrowed, and where it does. */
  region: MemoryRegion | undefined;
  offset = 0;
  remoteLow = 0;
  remoteHigh = 0;
  rkey = 0;
  /** What a Read resolves with, if the user gave the memory for it. */
  into: Uint8Array | undefined;
  resolve: ((value: Uint8Array | undefined) => void) | undefined;
  reject: ((error: Error) => void) | undefined;
  /** Ends the watch for signal and time-out. */
  unwatch: (() => void) | undefined;
  /** For requests of this library's own. */
  succeeded: (() => void) | undefined;
  posted = false;
  next: SendRequest | undefined;

  constructor(owner: SendRequestOwner) {
    this.#owner = owner;
  }

  complete(completion: WorkCompletion): void {
    this.#owner.requestCompleted(this, completion);
  }

  /** Forgets everything that could keep memory alive. */
  clear(): void {
    this.opcode = opcodes.send;
    this.length = 0;
    this.copy = undefined;
    this.staging = undefined;
    this.region = undefined;
    this.offset = 0;
    this.remoteLow = 0;
    this.remoteHigh = 0;
    this.rkey = 0;
    this.into = undefined;
    this.resolve = undefined;
    this.reject = undefined;
    this.unwatch = undefined;
    this.succeeded = undefined;
    this.posted = false;
    this.next = undefined;
  }
}

/** Requests that wait, in the order of their calls. */
export class RequestList {
  #first: SendRequest | undefined;
  #last: SendRequest | undefined;
  /** Bytes of the user's data in all of them. */
  bytes = 0;
  length = 0;

  get first(): SendRequest | undefined {
    return this.#first;
  }

  push(request: SendRequest): void {
    if (this.#last === undefined) this.#first = request;
    else this.#last.next = request;
    this.#last = request;
    this.bytes += request.length;
    this.length++;
  }

  shift(): SendRequest | undefined {
    const first = this.#first;
    if (first !== undefined) this.#unlink(first, undefined);
    return first;
  }

  remove(request: SendRequest): void {
    let before: SendRequest | undefined;
    for (let at = this.#first; at !== request; at = at.next) {
      if (at === undefined) return;
      before = at;
    }
    this.#unlink(request, before);
  }

  #unlink(request: SendRequest, before: SendRequest | undefined): void {
    if (before === undefined) this.#first = request.next;
    else before.next = request.next;
    if (this.#last === request) this.#last = before;
    request.next = undefined;
    this.bytes -= request.length;
    this.length--;
  }
}
