import {
  closedError,
  invalidArgumentType,
  RdmaError,
  requireInteger,
  type WorkCompletionError,
} from '../errors.js';
import type { Request } from '../peer-to-peer/handshake.js';
import { opcodes, RemoteMemory, type WorkCompletion } from '../verbs/index.js';
import { AbortError, onCancel, requireWaitOptions, type WaitOptions } from './cancellation.js';
import { wasFlushed } from './connection-error.js';
import { type FlowControl, messageKinds, prefixLength } from './flow-control.js';
import {
  longestCopied,
  type RequestPoster,
  requireCopyable,
  requireData,
  type SendTerms,
  tooLarge,
} from './request-poster.js';
import { RequestList, SendRequest, type SendRequestOwner } from './send-request.js';

/** What a send queue tells its connection. */
export interface SendQueueHost {
  /** A request failed, and that is why the connection ends. */
  requestFailed(error: WorkCompletionError): void;
  /** A request was flushed: the connection is lost, for a reason that comes by another way. */
  requestFlushed(error: WorkCompletionError): void;
  /** A request was called off that can't be recalled. */
  requestCancelled(error: Error): void;
  /** A request waits for the release. */
  requestHeld(): void;
  /** The error that ended the connection has reached the user by a promise. */
  errorCarried(): void;
  /** All that waited when something was refused is on its way. */
  queueDrained(): void;
  /** Nothing of the user's waits or is on its way. */
  queueIdle(): void;
  trafficSeen(): void;
}

export interface SendQueueLimits {
  readonly sendDepth: number;
  readonly highWaterMark: number;
  readonly maxMessageSize: number;
}

/** Room for requests of this library's own beyond `sendDepth`: a kick or an update, and goodbye. */
export const controlSends = 2;

/** What each waiting request counts beside its bytes: it takes memory too. */
const requestWeight = 64;

/** Length of a message on the wire: IBTA and RDMAP count to 2³¹ and beyond, drivers in an int. */
const longestTransfer = 0x7fff_ffff;

/** The work requests of one connection: gate, order, credits and backpressure. */
export class SendQueue implements SendRequestOwner {
  readonly #host: SendQueueHost;
  readonly #limits: SendQueueLimits;
  readonly #waiting = new RequestList();
  readonly #spare: SendRequest[] = [];
  /** Flushed while the cause is not known yet. */
  readonly #flushed: SendRequest[] = [];
  #poster: RequestPoster | undefined;
  #terms: SendTerms | undefined;
  #released = false;
  /** Posted and not completed: all of them, and those of this library's own. */
  #inFlight = 0;
  #ownInFlight = 0;
  #needDrain = false;
  #goodbye: 'none' | 'wanted' | 'posted' = 'none';
  #onGoodbye = () => {};
  #updates = true;
  #refusal: Error | undefined;
  #ended: Error | undefined;
  bytesRead = 0;
  bytesWritten = 0;

  constructor(host: SendQueueHost, limits: SendQueueLimits) {
    this.#host = host;
    this.#limits = limits;
  }

  /** Bytes that wait to be sent. */
  get waitingBytes(): number {
    return this.#waiting.bytes;
  }

  /** Nothing of the user's waits or is on its way. */
  get idle(): boolean {
    return this.#waiting.length === 0 && this.#inFlight === this.#ownInFlight;
  }

  get goodbyePosted(): boolean {
    return this.#goodbye === 'posted';
  }

  get maxMessageSize(): number {
    return this.#terms?.maxMessageSize ?? this.#limits.maxMessageSize;
  }

  /** There is a queue pair: what waits from now on waits in registered memory. */
  attach(poster: RequestPoster): void {
    this.#poster = poster;
  }

  setTerms(terms: SendTerms): void {
    this.#terms = terms;
  }

  /** Lets the user's requests flow, those that wait first. */
  release(): void {
    this.#released = true;
    this.pump();
  }

  send(data: Uint8Array, options: WaitOptions | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = this.#message(data);
      request.resolve = () => resolve();
      request.reject = reject;
      this.#submit(request, data, options);
    });
  }

  /** As `send()` without a promise; false, and nothing was sent, when too much waits. */
  trySend(data: Uint8Array): boolean {
    const request = this.#message(data);
    if (this.#overfull(request)) {
      this.#settle(request);
      return false;
    }
    this.#submit(request, data, undefined);
    return true;
  }

  write(remote: RemoteMemory, data: Uint8Array, options: WaitOptions | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = this.#remoteRequest(opcodes.write, remote, requireData(data).length, 'data.length');
      request.resolve = () => resolve();
      request.reject = reject;
      this.#submit(request, data, options);
    });
  }

  read(
    remote: RemoteMemory,
    target: number | Uint8Array,
    options: WaitOptions | undefined,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const into = target instanceof Uint8Array ? target : undefined;
      const length = target instanceof Uint8Array ? target.length : target;
      const request = this.#remoteRequest(opcodes.read, remote, length, 'length');
      if (into === undefined && length > longestCopied) {
        throw tooLarge(length, longestCopied, 'what can be read without a region');
      }
      request.into = into;
      request.resolve = resolve as (value: Uint8Array | undefined) => void;
      request.reject = reject;
      this.#submit(request, undefined, options);
    });
  }

  /** Posts a 0-byte request of the handshake, ahead of all that waits. */
  postEmpty(kind: Request, rkey: number, succeeded: () => void): void {
    const request = this.#ownRequest(succeeded);
    this.#poster!.postEmpty(request, kind, rkey);
  }

  /** A 0-byte Write when nothing else is on its way that would find out that the peer is gone. */
  probe(): void {
    if (this.#released && this.#inFlight === 0) this.postEmpty('write', this.#terms!.rkey, () => {});
  }

  /** From now on what is sent is refused; what waits is still sent. */
  refuse(error: Error): void {
    this.#refusal ??= error;
  }

  /** Says goodbye behind all that waits. */
  sayGoodbye(sent: () => void): void {
    if (this.#goodbye !== 'none') return;
    this.#goodbye = 'wanted';
    this.#onGoodbye = sent;
    this.pump();
  }

  /** The peer has said goodbye and needs no credits any more. */
  stopUpdates(): void {
    this.#updates = false;
  }

  /** Rejects all that waits; what is on its way follows with its completion. */
  end(error: Error): void {
    this.#ended = error;
    this.refuse(closedError('connection'));
    for (let request = this.#waiting.shift(); request; request = this.#waiting.shift()) {
      this.#rejectWith(request, error);
    }
    for (const request of this.#flushed.splice(0)) this.#rejectWith(request, error);
  }

  /** Posts what can be posted. */
  pump(): void {
    if (!this.#released || this.#ended !== undefined) return;
    for (let request = this.#waiting.first; request !== undefined; request = this.#waiting.first) {
      if (!this.#canPost(request)) break;
      this.#waiting.shift();
      try {
        this.#post(request);
      } catch (error) {
        this.#settle(request)?.(error as Error);
      }
    }
    this.#pumpControl();
    if (this.#waiting.length > 0) return;
    if (this.#needDrain) {
      this.#needDrain = false;
      this.#host.queueDrained();
    }
    if (this.idle) this.#host.queueIdle();
  }

  requestCompleted(request: SendRequest, completion: WorkCompletion): void {
    this.#inFlight--;
    if (request.succeeded === undefined) this.#host.trafficSeen();
    else this.#ownInFlight--;
    if (completion.ok) this.#succeed(request);
    else this.#fail(request, completion);
    this.pump();
  }

  #succeed(request: SendRequest): void {
    const { resolve, succeeded, opcode, length, into, staging } = request;
    let result: Uint8Array | undefined;
    if (opcode === opcodes.read && resolve !== undefined) {
      this.bytesRead += length;
      result = into ?? copyOf(staging!.bytes.subarray(prefixLength, prefixLength + length));
    }
    this.#settle(request);
    resolve?.(result);
    succeeded?.();
  }

  #fail(request: SendRequest, completion: WorkCompletion): void {
    const error = completion.error();
    if (this.#ended === undefined) {
      // Rejected by `end()`, which either of these brings about: one error for all.
      this.#flushed.push(request);
      if (wasFlushed(completion)) this.#host.requestFlushed(error);
      else this.#host.requestFailed(error);
    } else {
      this.#rejectWith(request, this.#ended);
    }
  }

  #rejectWith(request: SendRequest, error: Error): void {
    const reject = this.#settle(request);
    if (reject === undefined) return;
    this.#host.errorCarried();
    reject(error);
  }

  /** Gives back what the request holds, and the function that rejects its promise. */
  #settle(request: SendRequest): ((error: Error) => void) | undefined {
    const { reject, unwatch } = request;
    unwatch?.();
    this.#poster?.giveBack(request);
    request.clear();
    this.#spare.push(request);
    return reject;
  }

  #take(): SendRequest {
    return this.#spare.pop() ?? new SendRequest(this);
  }

  #message(data: Uint8Array): SendRequest {
    requireData(data);
    if (this.#refusal !== undefined) throw this.#refusal;
    const limit = this.maxMessageSize;
    if (data.length > limit) throw tooLarge(data.length, limit, 'the largest message of this connection');
    const request = this.#take();
    request.length = data.length;
    return request;
  }

  #remoteRequest(opcode: number, remote: RemoteMemory, length: number, name: string): SendRequest {
    if (!(remote instanceof RemoteMemory)) throw invalidArgumentType('remote', 'a RemoteMemory', remote);
    requireInteger(name, length, 0, Math.min(remote.length, longestTransfer));
    if (this.#refusal !== undefined) throw this.#refusal;
    const request = this.#take();
    request.opcode = opcode;
    request.length = length;
    request.remoteLow = remote.addressLow;
    request.remoteHigh = remote.addressHigh;
    request.rkey = remote.rkey;
    return request;
  }

  #overfull({ length }: SendRequest): boolean {
    const { bytes, length: count } = this.#waiting;
    if (count === 0 || bytes + length + (count + 1) * requestWeight <= this.#limits.highWaterMark)
      return false;
    this.#needDrain = true;
    return true;
  }

  #submit(request: SendRequest, data: Uint8Array | undefined, options: WaitOptions | undefined): void {
    try {
      requireWaitOptions(options);
      if (options?.signal?.aborted === true) throw new AbortError(options.signal.reason);
      if (this.#overfull(request)) {
        throw new RdmaError(
          'ERR_RDMA_QUEUE_FULL',
          `More than ${this.#limits.highWaterMark} bytes wait to be sent: wait for 'drain', or for earlier sends`,
        );
      }
      this.#place(request, data);
      if (this.#released && this.#waiting.length === 0 && this.#canPost(request)) this.#post(request);
      else this.#wait(request);
    } catch (error) {
      this.#settle(request);
      throw error;
    }
    if (options !== undefined) request.unwatch = onCancel(options, (error) => this.#cancel(request, error));
  }

  #wait(request: SendRequest): void {
    this.#waiting.push(request);
    if (!this.#released) this.#host.requestHeld();
  }

  #cancel(request: SendRequest, error: Error): void {
    if (request.posted) {
      this.#host.requestCancelled(error);
      return;
    }
    this.#waiting.remove(request);
    this.#settle(request)?.(error);
    this.pump();
  }

  /** `data` is undefined for a Read. */
  #place(request: SendRequest, data: Uint8Array | undefined): void {
    if (data === undefined) {
      this.#poster?.placeSink(request);
    } else if (this.#poster !== undefined) {
      // Without a promise there would be no telling when borrowed data can be changed again.
      this.#poster.placeSource(request, data, request.resolve !== undefined);
    } else {
      requireCopyable(request);
      request.copy = data.slice();
    }
  }

  #canPost(request: SendRequest): boolean {
    if (this.#inFlight >= this.#limits.sendDepth) return false;
    const flow = this.#terms?.flow;
    return flow === undefined || flow.credits > 0 || request.opcode !== opcodes.send;
  }

  #post(request: SendRequest): void {
    this.#poster!.post(request, this.#terms!);
    this.#inFlight++;
    if (request.opcode !== opcodes.read) this.bytesWritten += request.length;
  }

  #pumpControl(): void {
    const { flow } = this.#terms!;
    if (flow === undefined || this.#inFlight >= this.#limits.sendDepth + controlSends) return;
    if (this.#goodbye === 'wanted' && this.#waiting.length === 0) {
      this.#goodbye = 'posted';
      this.#postControl(flow, messageKinds.goodbye, this.#onGoodbye);
    } else if (this.#updates && flow.updateDue) {
      this.#postControl(flow, messageKinds.credits, () => {});
    }
  }

  #postControl(flow: FlowControl, kind: number, succeeded: () => void): void {
    this.#poster!.postControl(this.#ownRequest(succeeded), flow, kind);
  }

  #ownRequest(succeeded: () => void): SendRequest {
    const request = this.#take();
    request.succeeded = succeeded;
    this.#inFlight++;
    this.#ownInFlight++;
    return request;
  }
}

function copyOf(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
