import { AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { invalidArgumentType, RdmaError, requireInteger, requireOptions } from '../errors.js';
import type { PeerToPeerSummary } from '../peer-to-peer/handshake.js';
import type { MemoryOptions, MemoryRegion, RemoteMemory } from '../verbs/index.js';
import { maxDelay, type WaitOptions } from './cancellation.js';
import { type Capabilities, capabilitiesOf } from './capabilities.js';
import { closeTimeout } from './closing.js';
import { type ConnectionState, Link, type LinkOwner } from './link.js';
import type { ConnectionSettings } from './options.js';
import type { Lease } from './receive-queue.js';
import type { ChannelShare } from './shared-channel.js';
import { nextNumber, type TraceDetails, type TraceName, trace } from './trace.js';

/** Events of a `Connection`. */
export interface ConnectionEvents {
  established: [];
  /** Sends flow. */
  ready: [];
  /** A message, as a copy of one's own. With a listener for it messages are not queued for `receive()`. */
  message: [message: Buffer];
  /** All that waited when something was refused is on its way. */
  drain: [];
  /** What ended the connection, if no promise that the program has got was rejected with it. */
  error: [error: Error];
  /** Everything is over; once. */
  close: [];
}

const notRequested: PeerToPeerSummary = {
  requested: false,
  negotiated: false,
  rtr: null,
  kicked: false,
  times: {},
};

/**
 * A reliable connection that carries messages, and lets its two ends read and write one another's memory. Made by
 * `connect()`, or by a server.
 *
 * Its requests are carried out in the order of their calls, and a message that was received implies that the peer's
 * earlier Writes are in place. A Write after a Read can overtake it. Whatever ends the connection rejects all that is
 * outstanding with one error.
 */
export class Connection extends EventEmitter<ConnectionEvents> {
  /** @internal */
  readonly link: Link;
  readonly #number = nextNumber();
  readonly #resource = new AsyncResource('RdmaConnection');

  /** @internal */
  constructor(settings: ConnectionSettings, share: ChannelShare) {
    super();
    this.link = new Link(this.#owner(), settings, share);
    trace('connecting', this, this.#number);
    (this as EventEmitter).on('newListener', (name) => {
      // What was queued goes to the first listener, once it is there.
      if (name === 'message') process.nextTick(() => this.link.receives.flow());
    });
  }

  /** The two ends know of one another. Rejects with what prevents it. */
  get established(): Promise<void> {
    return this.link.lifecycle.established.promise;
  }

  /** Sends flow: for a peer-to-peer connection the handshake is over. What was sent before has gone first. */
  get ready(): Promise<void> {
    return this.link.lifecycle.ready.promise;
  }

  /** Everything is over. Rejects with the error that ended the connection, if one did. */
  get closed(): Promise<void> {
    return this.link.lifecycle.closed.promise;
  }

  get state(): ConnectionState {
    return this.link.state;
  }

  /** Known once the connection is established, as is the port. */
  get localAddress(): string | undefined {
    return this.link.addresses.localAddress;
  }

  get localPort(): number | undefined {
    return this.link.addresses.localPort;
  }

  /** Known as soon as the name of the host is resolved. */
  get remoteAddress(): string | undefined {
    return this.link.addresses.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.link.addresses.remotePort;
  }

  /**
   * What the peer gave as private data, once it is known. RoCE and InfiniBand pad it with zeros (56 bytes with a
   * request, 196 with an answer) unless the connection negotiates (`peerToPeer` or `flowControl`).
   */
  get privateData(): Buffer | undefined {
    return this.link.peerData;
  }

  /** Bytes of messages received, and of memory read. */
  get bytesRead(): number {
    return this.link.receives.bytesRead + this.link.sends.bytesRead;
  }

  /** Bytes of messages sent, and of memory written. */
  get bytesWritten(): number {
    return this.link.sends.bytesWritten;
  }

  /** Bytes that wait to be sent: those on their way do not count. */
  get writableLength(): number {
    return this.link.sends.waitingBytes;
  }

  /** Largest message in bytes: the smaller one of both sides' options, once the peer's is known. */
  get maxMessageSize(): number {
    return this.link.sends.maxMessageSize;
  }

  /** What became of the peer-to-peer handshake; times are those of `performance.now()`. */
  get peerToPeer(): PeerToPeerSummary {
    return this.link.handshake ?? notRequested;
  }

  /** What the device can do; undefined before there is one. */
  get capabilities(): Capabilities | undefined {
    const endpoint = this.link.endpoint;
    return endpoint === undefined || this.link.ended ? undefined : capabilitiesOf(endpoint.context.device);
  }

  /**
   * Sends a message of 0 to `maxMessageSize` bytes. The data is copied at the call, except for 256 bytes and more of a
   * region of the connection's protection domain: these are borrowed until the promise settles.
   *
   * Resolves when the device has taken the message (`ibv_poll_cq(3)`), which is **not delivery**: on iWARP not even the
   * peer's host need have it. Only an answer of the peer's program tells that it has.
   *
   * Rejects with `ERR_RDMA_MESSAGE_TOO_LARGE`, `ERR_RDMA_QUEUE_FULL`, `ERR_RDMA_CLOSED`, `EPIPE` when the peer is
   * closing, or with what ended the connection.
   */
  send(data: Uint8Array, options?: WaitOptions): Promise<void> {
    return this.link.sends.send(data, options);
  }

  /**
   * As `send()`, without a promise, and always with a copy: false, and nothing is sent, when too much waits already.
   * Then `'drain'` tells when to go on. A failure ends the connection, and is told there.
   *
   * @throws as `send()` rejects
   */
  trySend(data: Uint8Array): boolean {
    return this.link.sends.trySend(data);
  }

  /**
   * Writes to the peer's memory: RDMA Write, of `data.length` bytes from the beginning of `remote`. As with `send()`
   * the data is copied, up to 1 MiB, or borrowed from a region; and resolving tells that it is under way, not that it
   * is in place. The peer's program is not told.
   */
  write(remote: RemoteMemory, data: Uint8Array, options?: WaitOptions): Promise<void> {
    return this.link.sends.write(remote, data, options);
  }

  /**
   * Reads the peer's memory: RDMA Read, from the beginning of `remote`. With a length (default: all of `remote`, at
   * most 1 MiB) resolves with a copy; with a part of a region of the connection's protection domain, which must have
   * access `'read-sink'`, fills that and resolves with it.
   *
   * Rejects with `ERR_RDMA_NOT_A_READ_SINK`, and `ENOTSUP` where the peer serves no Reads.
   */
  read(remote: RemoteMemory, length?: number, options?: WaitOptions): Promise<Buffer>;
  read<T extends Uint8Array>(remote: RemoteMemory, into: T, options?: WaitOptions): Promise<T>;
  read(
    remote: RemoteMemory,
    target: number | Uint8Array = remote?.length,
    options?: WaitOptions,
  ): Promise<Uint8Array> {
    return this.link.sends.read(remote, target, options);
  }

  /**
   * The next message, as a copy of one's own; null when the connection has come to an orderly end. Without flow control
   * (so without `peerToPeer`) nothing tells a peer that has died from one that has closed: its end is null, too.
   */
  receive(options?: WaitOptions): Promise<Buffer | null> {
    return this.link.receives.receive(options);
  }

  /** The messages, to the end: `receive()` again and again. To leave the loop does not close the connection. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for (let message = await this.receive(); message !== null; message = await this.receive()) yield message;
  }

  /**
   * The messages without a copy: `data` lies where the device has put it. What is not released holds a receive of the
   * connection, and its credit: the peer runs out of them, on a plain iWARP connection at the cost of the connection.
   */
  async *leases(): AsyncGenerator<Lease, void, undefined> {
    const { receives } = this.link;
    for (let lease = await receives.lease(); lease !== null; lease = await receives.lease()) yield lease;
  }

  /**
   * Allocates registered memory, closed with the connection. `access` says what the peer may do with it; `remote()` of
   * the region makes the descriptor that the peer needs for it.
   *
   * @throws (rejects) `ERR_RDMA_NOT_CONNECTED` before there is a device: wait for `established`
   */
  async allocate(length: number, options?: MemoryOptions): Promise<MemoryRegion> {
    return this.#keep(await this.#protectionDomain.allocate(length, options));
  }

  /** Registers existing memory in place: `ibv_reg_mr(3)`. As {@link allocate} otherwise. */
  async register(
    memory: ArrayBuffer | SharedArrayBuffer | Uint8Array,
    options?: MemoryOptions,
  ): Promise<MemoryRegion> {
    return this.#keep(await this.#protectionDomain.register(memory, options));
  }

  /**
   * Lets the sends of an accepted iWARP connection flow before the client has sent anything: only for a client that is
   * known to be ready to receive. See `peerToPeer` for the way to do it in general.
   */
  releaseSends(): void {
    this.link.releaseSends();
  }

  /**
   * Closes the connection in order: what was sent goes out, and with flow control (so with `peerToPeer`) it arrives. It
   * takes `timeout` milliseconds, 5000, at most; what could not be sent by then rejects with `ETIMEDOUT`. There is no
   * half of a connection: the peer's `close()` closes this end too. Messages that have arrived can still be received.
   *
   * Resolves when everything is over, whatever ended it. Can be called at any time, any number of times.
   */
  async close(options: { timeout?: number } = {}): Promise<void> {
    requireOptions('options', options);
    const timeout = requireInteger(
      'options.timeout',
      options.timeout === undefined ? closeTimeout : options.timeout,
      0,
      maxDelay,
    );
    const closed = this.link.lifecycle.closed.outcome;
    this.link.close(timeout);
    await closed;
  }

  /** Ends the connection at once; what is outstanding is rejected, with `error` if there is one. */
  destroy(error?: Error): this {
    if (error !== undefined && !(error instanceof Error))
      throw invalidArgumentType('error', 'an Error', error);
    this.link.end(error);
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The connection keeps the process alive (the default). */
  ref(): this {
    this.link.share.ref();
    return this;
  }

  /** The connection does not keep the process alive. */
  unref(): this {
    this.link.share.unref();
    return this;
  }

  [inspect.custom](_depth: number, options: object): string {
    const { state, localAddress, localPort, remoteAddress, remotePort, bytesRead, bytesWritten, peerToPeer } =
      this;
    const shown = {
      state,
      localAddress,
      localPort,
      remoteAddress,
      remotePort,
      bytesRead,
      bytesWritten,
      peerToPeer,
    };
    return `Connection ${inspect(shown, options)}`;
  }

  get #protectionDomain() {
    const endpoint = this.link.endpoint;
    if (endpoint === undefined) {
      throw new RdmaError('ERR_RDMA_NOT_CONNECTED', 'The connection has no device yet: wait for established');
    }
    return endpoint.domain.pd;
  }

  #keep(region: MemoryRegion): MemoryRegion {
    this.link.regions.add(region);
    if (this.link.ended) void region.close();
    return region;
  }

  #owner(): LinkOwner {
    return {
      emitEvent: (name) => this.#emit(name),
      emitMessage: (message) => this.#emit('message', message),
      emitError: (error) => this.#emit('error', error),
      hasListener: (name) => this.listenerCount(name) > 0,
      trace: (name: TraceName, details?: TraceDetails) => trace(name, this, this.#number, details),
    };
  }

  #emit<K extends keyof ConnectionEvents>(name: K, ...args: ConnectionEvents[K]): void {
    const emit = this.emit as (name: K, ...args: ConnectionEvents[K]) => boolean;
    try {
      this.#resource.runInAsyncScope(emit, this, name, ...args);
    } catch (error) {
      // A listener that throws must not keep a handshake or the other connections from their work.
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
