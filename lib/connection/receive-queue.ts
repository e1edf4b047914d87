import { RdmaError } from '../errors.js';
import type { WorkCompletion } from '../verbs/index.js';
import { AbortError, onCancel, requireWaitOptions, type WaitOptions } from './cancellation.js';
import { type FlowControl, messageKinds, prefixLength } from './flow-control.js';
import type { ReceiveBuffer, ReceiveBuffers } from './receive-buffers.js';

/** A message where it was received. */
export interface Lease {
  /** Valid until `release()`, or until the connection has closed. */
  readonly data: Buffer;
  /** Gives the receive, and so its credit, back. Can be called again. */
  release(): void;
}

/** What a receive queue tells its connection. */
export interface ReceiveQueueHost {
  /** A message of `length` bytes came in; whether it is GO, which is no message of the user's. */
  messageArrived(length: number): boolean;
  receiveFailed(completion: WorkCompletion): void;
  /** More than can be queued, or what no peer that keeps to the rules sends. */
  receivedWrongly(error: RdmaError): void;
  /** A receive was posted again: the peer may be due for its credit. */
  creditOwed(): void;
  goodbyeReceived(): void;
  /** Whether `messageForListener()` would find one. */
  hasMessageListener(): boolean;
  messageForListener(message: Buffer): void;
  errorCarried(): void;
}

/**
 * What becomes of a message that nobody waits for. `hold`: it stays in its receive, which holds the peer back, by its
 * credit or (RoCE) by the transport. `copy`: iWARP holds nobody back, so it is copied and the receive posted again.
 */
export type Lagging = 'hold' | 'copy';

interface Message {
  /** Undefined once it has been copied. */
  buffer: ReceiveBuffer | undefined;
  copy: Buffer | undefined;
  start: number;
  end: number;
}

interface Reader {
  take(message: Message): void;
  end(): void;
  reject(error: Error): void;
}

/** The messages of one connection, from their receives to their readers. */
export class ReceiveQueue {
  readonly #host: ReceiveQueueHost;
  readonly #maxQueuedBytes: number;
  readonly #messages: Message[] = [];
  readonly #readers = new Set<Reader>();
  #buffers: ReceiveBuffers | undefined;
  #flow: FlowControl | undefined;
  #lagging: Lagging = 'hold';
  #copiedBytes = 0;
  /** Received before the terms of the connection were known. */
  #early: { buffer: ReceiveBuffer; length: number }[] | undefined = [];
  /** No message comes any more; readers of an empty queue end, or throw the error. */
  #ended: { error: Error | undefined } | undefined;
  bytesRead = 0;

  constructor(host: ReceiveQueueHost, maxQueuedBytes: number) {
    this.#host = host;
    this.#maxQueuedBytes = maxQueuedBytes;
  }

  attach(buffers: ReceiveBuffers): void {
    this.#buffers = buffers;
    buffers.onCompletion = (buffer, completion) => this.#completed(buffer, completion);
  }

  setTerms(flow: FlowControl | undefined, lagging: Lagging): void {
    this.#flow = flow;
    this.#lagging = lagging;
  }

  /** The terms are known: takes what was received before, and what comes from now on. */
  start(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const { buffer, length } of early) this.#take(buffer, length);
  }

  /** The peer shall not have to wait for a reader any more, up to the limit of what is queued. */
  stopHolding(): void {
    this.#lagging = 'copy';
    for (const message of this.#messages) this.#release(message);
  }

  /** The next message as a copy; null at the end. */
  receive(options: WaitOptions | undefined): Promise<Buffer | null> {
    return this.#read((message) => this.#detach(message), options);
  }

  /** The next message where it is; null at the end. */
  lease(): Promise<Lease | null> {
    return this.#read((message) => this.#lend(message), undefined);
  }

  /** Gives what is queued to the listeners, as long as there are some. */
  flow(): void {
    while (this.#messages.length > 0 && this.#host.hasMessageListener()) {
      this.#host.messageForListener(this.#detach(this.#messages.shift()!));
    }
  }

  /** Readers take what is queued and then end, or throw. */
  end(error: Error | undefined): void {
    if (this.#ended !== undefined) return;
    this.#ended = { error };
    for (const reader of this.#readers) {
      if (error === undefined) {
        reader.end();
      } else {
        this.#host.errorCarried();
        reader.reject(error);
      }
    }
    this.#readers.clear();
  }

  /** Copies what is still in the receives: their memory goes. */
  detachAll(): void {
    this.#buffers?.close();
    for (const message of this.#messages) this.#toCopy(message);
  }

  #completed(buffer: ReceiveBuffer, completion: WorkCompletion): void {
    if (!completion.ok) this.#host.receiveFailed(completion);
    else if (this.#early === undefined) this.#take(buffer, completion.byteLength);
    else this.#early.push({ buffer, length: completion.byteLength });
  }

  #take(buffer: ReceiveBuffer, length: number): void {
    const buffers = this.#buffers!;
    if (this.#host.messageArrived(length)) buffers.post(buffer);
    else if (this.#flow === undefined) this.#deliver({ buffer, copy: undefined, start: 0, end: length });
    else if (length >= prefixLength) this.#takePrefixed(buffers, buffer, length, this.#flow);
    else {
      const message = `A message of ${length} bytes can't carry credits`;
      this.#host.receivedWrongly(new RdmaError('ERR_RDMA_PROTOCOL', message));
    }
  }

  #takePrefixed(buffers: ReceiveBuffers, buffer: ReceiveBuffer, length: number, flow: FlowControl): void {
    const kind = flow.receive(buffers.prefix(buffer));
    if (kind === messageKinds.data) {
      this.#deliver({ buffer, copy: undefined, start: prefixLength, end: length });
    } else {
      buffers.post(buffer);
      if (kind === messageKinds.goodbye) this.#host.goodbyeReceived();
    }
    // It may have brought credits, or the acknowledgement that an update waits for.
    this.#host.creditOwed();
  }

  #deliver(message: Message): void {
    this.bytesRead += message.end - message.start;
    const [reader] = this.#readers;
    if (reader !== undefined) {
      this.#readers.delete(reader);
      reader.take(message);
    } else if (this.#messages.length === 0 && this.#host.hasMessageListener()) {
      this.#host.messageForListener(this.#detach(message));
    } else {
      this.#messages.push(message);
      if (this.#lagging === 'copy') this.#release(message);
    }
  }

  #read<T>(convert: (message: Message) => T, options: WaitOptions | undefined): Promise<T | null> {
    return new Promise((resolve, reject) => {
      requireWaitOptions(options);
      if (options?.signal?.aborted === true) throw new AbortError(options.signal.reason);
      const message = this.#messages.shift();
      if (message !== undefined) return resolve(convert(message));
      if (this.#ended !== undefined) {
        const { error } = this.#ended;
        if (error === undefined) return resolve(null);
        this.#host.errorCarried();
        throw error;
      }
      let unwatch = () => {};
      const reader: Reader = {
        take: (arrived) => {
          unwatch();
          resolve(convert(arrived));
        },
        end: () => {
          unwatch();
          resolve(null);
        },
        reject: (error) => {
          unwatch();
          reject(error);
        },
      };
      this.#readers.add(reader);
      unwatch = onCancel(options, (error) => {
        this.#readers.delete(reader);
        reject(error);
      });
    });
  }

  /** The message as a copy of its own, with its receive posted again before the user sees it. */
  #detach(message: Message): Buffer {
    this.#toCopy(message);
    this.#copiedBytes -= message.end - message.start;
    return message.copy!;
  }

  #lend(message: Message): Lease {
    if (message.buffer === undefined) return { data: this.#detach(message), release: () => {} };
    return {
      data: this.#buffers!.view(message.buffer, message.start, message.end),
      release: () => {
        const { buffer } = message;
        message.buffer = undefined;
        if (buffer !== undefined) this.#repost(buffer);
      },
    };
  }

  /** Copies a queued message to free its receive, unless too much is queued already. */
  #release(message: Message): void {
    if (message.buffer === undefined) return;
    if (this.#copiedBytes + message.end - message.start <= this.#maxQueuedBytes) {
      this.#toCopy(message);
    } else if (this.#flow === undefined) {
      this.#host.receivedWrongly(
        new RdmaError(
          'ERR_RDMA_RECEIVE_OVERFLOW',
          `More than ${this.#maxQueuedBytes} bytes were received and not read, and iWARP can't hold the peer back`,
        ),
      );
    }
  }

  #toCopy(message: Message): void {
    const { buffer, start, end } = message;
    if (buffer === undefined) return;
    message.copy = this.#buffers!.copy(buffer, start, end);
    message.buffer = undefined;
    this.#copiedBytes += end - start;
    this.#repost(buffer);
  }

  #repost(buffer: ReceiveBuffer): void {
    if (this.#ended !== undefined) return;
    this.#buffers!.post(buffer);
    if (this.#flow === undefined) return;
    this.#flow.reposted();
    this.#host.creditOwed();
  }
}
