import type { CmId } from '../cm/index.js';
import { closedError, type RdmaError, systemError, type WorkCompletionError } from '../errors.js';
import type { PeerToPeerSummary, Request, Step } from '../peer-to-peer/handshake.js';
import type { Agreement } from '../peer-to-peer/negotiation.js';
import type { MemoryRegion, WorkCompletion } from '../verbs/index.js';
import { Activity } from './activity.js';
import { AbortError } from './cancellation.js';
import { Closing, closeTimeout } from './closing.js';
import { lostError, timeoutError, wasFlushed } from './connection-error.js';
import type { Endpoint } from './endpoint.js';
import { FlowControl } from './flow-control.js';
import { ActiveDriver, type HandshakeHost, type PassiveDriver } from './handshake-driver.js';
import { Lifecycle } from './lifecycle.js';
import type { ConnectionSettings } from './options.js';
import { ReceiveQueue, type ReceiveQueueHost } from './receive-queue.js';
import { RequestPoster } from './request-poster.js';
import { SendQueue, type SendQueueHost } from './send-queue.js';
import type { ChannelShare } from './shared-channel.js';
import type { TraceDetails, TraceName } from './trace.js';

/** `'closing'` begins with `close()`, or with what ends the connection; `'closed'` is final. */
export type ConnectionState = 'connecting' | 'established' | 'closing' | 'closed';

/** The public face of a link, which tells the user. */
export interface LinkOwner {
  emitEvent(name: 'established' | 'ready' | 'drain' | 'close'): void;
  emitMessage(message: Buffer): void;
  emitError(error: Error): void;
  hasListener(name: 'message' | 'error'): boolean;
  trace(name: TraceName, details?: TraceDetails): void;
}

/** The addresses of both ends. */
export interface Addresses {
  localAddress?: string;
  localPort?: number;
  remoteAddress?: string;
  remotePort?: number;
}

/** How long the event that says why may come after the first flushed request: then it does not come. */
const causeDelay = 1000;

const ENODEV = 19;

/**
 * The working of one connection: ties its queues, its handshake and its end together. Whatever ends it goes through
 * {@link Link.end}, once.
 */
export class Link implements SendQueueHost, ReceiveQueueHost, HandshakeHost {
  readonly settings: ConnectionSettings;
  readonly share: ChannelShare;
  readonly sends: SendQueue;
  readonly receives: ReceiveQueue;
  readonly lifecycle = new Lifecycle();
  readonly closing: Closing;
  readonly regions = new Set<MemoryRegion>();
  readonly #owner: LinkOwner;
  readonly #activity = new Activity();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.end(new AbortError(this.#signal?.reason));
  addresses: Addresses = {};
  /** The peer's private data, without any header. */
  peerData: Buffer | undefined;
  /** Called when the connection is established, before the user is told. */
  onEstablished = () => {};
  /** Called when everything is over. */
  onClosed = (_error: Error | undefined, _established: boolean) => {};
  /** What the user is told for an error that ends the connection. */
  explain = (error: Error) => error;
  #driver: ActiveDriver | PassiveDriver | undefined;
  #id: CmId | undefined;
  #endpoint: Endpoint | undefined;
  #agreement: Agreement | undefined;
  #flow: FlowControl | undefined;
  #connectCall: Promise<void> | undefined;
  /** The peer has been asked for the connection. */
  #asked = false;
  #established = false;
  #ended = false;
  #finished = false;
  #connectTimer: NodeJS.Timeout | undefined;
  #causeTimer: NodeJS.Timeout | undefined;
  #flushCause: WorkCompletionError | undefined;

  constructor(owner: LinkOwner, settings: ConnectionSettings, share: ChannelShare) {
    this.#owner = owner;
    this.settings = settings;
    this.share = share;
    this.sends = new SendQueue(this, settings);
    this.receives = new ReceiveQueue(this, settings.maxQueuedBytes);
    this.closing = new Closing(this.sends, this.receives, (reason) => this.end(undefined, reason));
    const { signal, timeout } = settings;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
    const expire = () => this.end(timeoutError(timeout, this.#target));
    this.#connectTimer = setTimeout(expire, timeout).unref();
    if (signal?.aborted === true) process.nextTick(this.#onAbort);
  }

  get state(): ConnectionState {
    if (this.#finished) return 'closed';
    if (this.#ended || this.closing.begun) return 'closing';
    return this.#established ? 'established' : 'connecting';
  }

  get ended(): boolean {
    return this.#ended;
  }

  get endpoint(): Endpoint | undefined {
    return this.#endpoint;
  }

  get handshake(): PeerToPeerSummary | undefined {
    return this.#driver?.summary;
  }

  /** It is the active side and was not established, as far as it knows. */
  get #unanswered(): boolean {
    return this.#asked && !this.#established;
  }

  get #target(): { address?: string; port?: number } {
    const { remoteAddress, remotePort } = this.addresses;
    return remoteAddress === undefined || remotePort === undefined
      ? {}
      : { address: remoteAddress, port: remotePort };
  }

  adoptId(id: CmId): void {
    this.#id = id;
    id.on('disconnected', () => this.#disconnected());
    id.on('device-removal', () => this.end(systemError(ENODEV, 'rdma_get_cm_event')));
  }

  /** Submits the receives: to connect or to accept, which comes after it, posts them. */
  adoptEndpoint(endpoint: Endpoint): void {
    this.#endpoint = endpoint;
    const { handle } = endpoint.queuePair;
    this.sends.attach(new RequestPoster(handle, endpoint.domain));
    this.receives.attach(endpoint.receives);
    endpoint.receives.postAll(handle);
  }

  adoptDriver(driver: ActiveDriver | PassiveDriver): void {
    this.#driver = driver;
  }

  /** `rdma_connect()` is in the kernel, where nothing can call it back. */
  connecting(call: Promise<void>): void {
    const returned = () => {
      this.#connectCall = undefined;
    };
    this.#connectCall = call.then(returned, returned);
    this.#asked = true;
  }

  /** What the two sides agreed on is known. */
  agree(agreement: Agreement, canRead: boolean): void {
    const { maxMessageSize, receiveDepth } = this.settings;
    const { sendCredits } = agreement;
    this.#agreement = agreement;
    this.#flow = sendCredits === null ? undefined : new FlowControl(receiveDepth, sendCredits);
    this.sends.setTerms({
      flow: this.#flow,
      maxMessageSize: Math.min(maxMessageSize, agreement.maxMessageSize ?? maxMessageSize),
      canRead,
      rkey: agreement.rkey,
    });
    const unheld = this.#flow === undefined && this.#endpoint!.iwarp;
    this.receives.setTerms(this.#flow, unheld ? 'copy' : 'hold');
  }

  close(timeout: number): void {
    if (!this.#ended) this.closing.begin(this.#closingPhase, timeout);
  }

  releaseSends(): void {
    this.#driver?.releaseSends();
  }

  /**
   * Ends the connection. Without an error readers come to an end and nothing is emitted; `reason` is then for what
   * could not be sent.
   */
  end(cause: Error | undefined, reason?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    const error = cause && this.explain(cause);
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#causeTimer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#activity.stop();
    this.closing.stop();
    const forSends = error ?? reason ?? closedError('connection');
    this.#driver?.stop(forSends);
    this.lifecycle.end(forSends);
    this.sends.end(forSends);
    this.receives.end(error);
    // Not in the callback of a completion: what is destroyed now may be in use there.
    setImmediate(() => void this.#tearDown(error));
  }

  // What the send queue tells.

  requestFailed(error: WorkCompletionError): void {
    this.end(error);
  }

  requestFlushed(error: WorkCompletionError): void {
    this.#flushCause ??= error;
    if (this.#ended || this.#causeTimer !== undefined) return;
    const expire = () => this.#lost();
    this.#causeTimer = setTimeout(expire, causeDelay).unref();
  }

  requestCancelled(error: Error): void {
    this.end(error);
  }

  requestHeld(): void {
    this.#driver?.queued();
  }

  errorCarried(): void {
    this.lifecycle.errorCarried();
  }

  queueDrained(): void {
    this.#owner.emitEvent('drain');
  }

  queueIdle(): void {
    if (this.closing.begun && !this.#ended) this.#continueClosing();
  }

  trafficSeen(): void {
    this.#activity.seen();
  }

  // What the receive queue tells.

  messageArrived(length: number): boolean {
    this.#activity.seen();
    const driver = this.#driver!;
    return !driver.settled && driver.received(length);
  }

  receiveFailed(completion: WorkCompletion): void {
    if (this.#ended) return;
    if (wasFlushed(completion)) this.requestFlushed(completion.error());
    else this.end(completion.error());
  }

  receivedWrongly(error: RdmaError): void {
    this.end(error);
  }

  creditOwed(): void {
    this.sends.pump();
  }

  goodbyeReceived(): void {
    this.closing.hear();
  }

  hasMessageListener(): boolean {
    return this.#owner.hasListener('message');
  }

  messageForListener(message: Buffer): void {
    this.#owner.emitMessage(message);
  }

  // What the handshake has to have done.

  postHandshake(request: Request): void {
    const driver = this.#driver;
    this.sends.postEmpty(request, this.#agreement!.rkey, () => {
      if (driver instanceof ActiveDriver) driver.completed(request);
    });
  }

  handshakeEstablished(): void {
    this.#established = true;
    clearTimeout(this.#connectTimer);
    const { localAddress, localPort, remoteAddress, remotePort } = this.#id!.info;
    this.addresses = { localAddress, localPort, remoteAddress, remotePort };
    const { idleTimeout, keepAliveInterval } = this.settings;
    this.#activity.start(idleTimeout, keepAliveInterval, {
      idle: () => this.closing.begin(this.#closingPhase, closeTimeout),
      probe: () => this.sends.probe(),
    });
    this.onEstablished();
    this.lifecycle.established.settle(undefined);
    this.#owner.trace('established');
    this.#owner.emitEvent('established');
  }

  handshakeReleased(): void {
    this.sends.release();
    if (this.#ended) return;
    this.lifecycle.ready.settle(undefined);
    this.#owner.trace('ready');
    this.#owner.emitEvent('ready');
    this.#continueClosing();
  }

  handshakeFailed(error: Error): void {
    this.end(error);
  }

  handshakeStep(step: Step, at: number): void {
    this.#owner.trace('step', { step, at });
  }

  get #closingPhase(): 'opening' | 'plain' | 'credits' {
    if (!this.#established) return 'opening';
    return this.#flow === undefined ? 'plain' : 'credits';
  }

  #continueClosing(): void {
    const phase = this.#closingPhase;
    if (phase !== 'opening') this.closing.proceed(phase);
  }

  #disconnected(): void {
    // What arrived before the end is delivered before it.
    if (!this.#ended) this.#endpoint?.drain();
    this.#lost();
  }

  /** The peer, or the network, has ended the connection. */
  #lost(): void {
    if (this.#ended) return;
    const error = lostError(this.#flushCause);
    if (this.#endedOrderly) this.end(undefined, error);
    else this.end(error);
  }

  /** With credits only goodbye tells an orderly end from a dead peer; without them nothing does. */
  get #endedOrderly(): boolean {
    if (this.closing.begun) return true;
    if (!this.#established || this.#flow !== undefined) return false;
    // In the middle of a handshake it can't have been meant.
    return this.#driver!.settled || this.#driver!.summary.requested === false;
  }

  async #tearDown(error: Error | undefined): Promise<void> {
    // The kernel has the queue pair and the id in use until the peer answers, and siw takes up to 20 seconds to connect
    // and 10 more to give up: nobody shall wait for that.
    if (this.#unanswered) this.#finish(error);
    await this.#connectCall;
    try {
      await this.#takeBack();
    } finally {
      this.#finish(error);
      await this.#id?.close();
      this.share.release();
    }
  }

  async #takeBack(): Promise<void> {
    try {
      // Disconnecting what is not connected any more fails and means nothing. While the answer is awaited it would block
      // this thread, in iw_cm_disconnect(): to destroy the id, which another thread does, is enough then.
      if (!this.#unanswered) this.#id?.disconnect();
    } catch {}
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    endpoint.quiesce();
    await endpoint.dispose(async () => {
      this.receives.detachAll();
      // One that is busy is in use by another connection, and outlives this one.
      await Promise.allSettled([...this.regions].map((region) => region.close()));
    });
  }

  #finish(error: Error | undefined): void {
    if (this.#finished) return;
    this.#finished = true;
    this.share.unref();
    this.#owner.trace('closed', { error });
    this.onClosed(error, this.#established);
    if (this.lifecycle.close(error, this.#owner.hasListener('error'))) this.#owner.emitError(error!);
    this.#owner.emitEvent('close');
  }
}
