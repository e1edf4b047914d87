import { EventEmitter } from 'node:events';
import { isIP } from 'node:net';
import { useBinding } from '../binding/addon.js';
import type { NativeCmEvent, NativeCmIdInfo, NativeConnectionParameters } from '../binding/cm.js';
import { NativeObject } from '../binding/native-object.js';
import {
  closedError,
  invalidArgumentType,
  invalidArgumentValue,
  requireInteger,
  requireOneOf,
  requireOptions,
} from '../errors.js';
import { Device } from '../verbs/device.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { QueuePair, type QueuePairOptions } from '../verbs/queue-pair.js';
import { type CmEvent, type CmEventName, type ConnectionParameters, eventError, toCmEvent } from './event.js';
import { EventChannel, listeners } from './event-channel.js';

/** `rdma_port_space`. */
const portSpaces = { TCP: 0x0106, UDP: 0x0111, IPOIB: 0x0002, IB: 0x013f } as const;
export type PortSpace = keyof typeof portSpaces;

/** Where a cm_id can go: a numeric address, IPv6 link-local with its scope (`fe80::1%eth0`), and a port. */
export interface CmAddress {
  address: string;
  /** 0 to 65535; 0 lets the kernel choose. */
  port: number;
}

/** All events by name, `connect-request` with the new id; `event` for each of them. */
export type CmIdEvents = {
  [K in CmEventName]: K extends 'connect-request' ? [event: CmEvent, id: CmId] : [event: CmEvent];
} & { event: [event: CmEvent, id: CmId] };

const ETIMEDOUT = 110;
const EHOSTUNREACH = 113;

function checkAddress(name: string, value: CmAddress): CmAddress {
  if (typeof value !== 'object' || value === null) {
    throw invalidArgumentType(name, 'an object with address and port', value);
  }
  const { address, port } = value;
  if (typeof address !== 'string') throw invalidArgumentType(`${name}.address`, 'a string', address);
  if (isIP(address) === 0)
    throw invalidArgumentValue(`${name}.address`, address, 'must be a numeric IP address');
  return { address, port: requireInteger(`${name}.port`, port, 0, 65535) };
}

function checkPrivateData(privateData: unknown): Uint8Array | null {
  if (privateData === undefined) return null;
  if (!(privateData instanceof Uint8Array)) {
    throw invalidArgumentType('privateData', 'a Uint8Array', privateData);
  }
  requireInteger('privateData.length', privateData.length, 0, 255);
  return privateData;
}

function checkParameters(parameters: ConnectionParameters): NativeConnectionParameters {
  requireOptions('parameters', parameters);
  const depth = (name: 'responderResources' | 'initiatorDepth') =>
    requireInteger(`parameters.${name}`, parameters[name] ?? 1, 0, 255);
  const retries = (name: 'retryCount' | 'rnrRetryCount') =>
    requireInteger(`parameters.${name}`, parameters[name] ?? 7, 0, 7);
  return {
    responderResources: depth('responderResources'),
    initiatorDepth: depth('initiatorDepth'),
    flowControl: parameters.flowControl === true ? 1 : 0,
    retryCount: retries('retryCount'),
    rnrRetryCount: retries('rnrRetryCount'),
    privateData: checkPrivateData(parameters.privateData),
  };
}

interface Waiter {
  succeeds: CmEventName;
  fails: CmEventName;
  resolve: () => void;
  reject: (error: Error) => void;
  syscall: string;
  fallback: number;
  destination: CmAddress | undefined;
}

/** The native half of a {@link CmId}, which is an EventEmitter and so can't extend it. */
class NativeId extends NativeObject {
  readonly #abandonWaiters: () => void;

  /** `abandonWaiters` runs when the id is closed, also by its channel. */
  constructor(handle: number, channel: EventChannel, abandonWaiters: () => void) {
    const { native } = useBinding();
    const destroy = (id: number) => {
      listeners.delete(id);
      return native.destroyId(id);
    };
    super('CmId', 1, handle, destroy, [channel]);
    this.#abandonWaiters = abandonWaiters;
  }

  protected override beforeClose(): undefined {
    this.#abandonWaiters();
  }
}

/**
 * `rdma_cm_id`: one end of a connection, or a listener. The calls are those of rdma_cm; what the kernel answers is
 * emitted as events, and the two resolve steps are promises as well.
 */
export class CmId extends EventEmitter<CmIdEvents> {
  readonly channel: EventChannel;
  readonly #native: NativeId;
  readonly #handle: number;
  #waiter: Waiter | undefined;
  #abandonConnect: ((error: Error) => void) | undefined;
  #device: Device | undefined;

  /** `rdma_create_id(3)`. */
  constructor(channel: EventChannel, options?: { portSpace?: PortSpace });
  /** @internal Takes over the id of a connection request. */
  constructor(channel: EventChannel, options: { portSpace?: PortSpace }, handle: number);
  constructor(channel: EventChannel, options: { portSpace?: PortSpace } = {}, handle?: number) {
    super();
    if (!(channel instanceof EventChannel)) throw invalidArgumentType('channel', 'an EventChannel', channel);
    requireOptions('options', options);
    const space = requireOneOf(
      'options.portSpace',
      options.portSpace ?? 'TCP',
      Object.keys(portSpaces) as PortSpace[],
    );
    this.channel = channel;
    this.#handle = handle ?? useBinding().native.createId(channel.handle, portSpaces[space]);
    this.#native = new NativeId(this.#handle, channel, () => this.#abandonWaiters());
    listeners.set(this.#handle, { handleEvent: (event) => this.#handleEvent(event) });
  }

  #handleEvent(native: NativeCmEvent): void {
    const event = toCmEvent(native);
    if (native.listener !== 0) {
      const id = new CmId(this.channel, {}, native.id);
      // Nobody there to answer it: closing rejects.
      if (!this.emit('connect-request', event, id)) void id.close();
      this.emit('event', event, id);
      return;
    }
    const waiter = this.#waiter;
    if (waiter !== undefined && (event.name === waiter.succeeds || event.name === waiter.fails)) {
      this.#waiter = undefined;
      const { address, port } = waiter.destination ?? {};
      if (event.name === waiter.succeeds) waiter.resolve();
      else waiter.reject(eventError(event, waiter.syscall, waiter.fallback, address, port));
    }
    (this.emit as (name: string, event: CmEvent) => boolean).call(this, event.name, event);
    this.emit('event', event, this);
  }

  #wait(waiter: Omit<Waiter, 'resolve' | 'reject'>, start: () => void): Promise<void> {
    start();
    return new Promise((resolve, reject) => {
      this.#waiter = { ...waiter, resolve, reject };
    });
  }

  #abandonWaiters(): void {
    this.#waiter?.reject(closedError('CmId'));
    this.#waiter = undefined;
    this.#abandonConnect?.(closedError('CmId'));
  }

  /** `rdma_bind_addr(3)`. */
  bind(local: CmAddress): void {
    const { address, port } = checkAddress('local', local);
    useBinding().native.bindAddress(this.#native.handle, address, port);
  }

  /** `rdma_listen(3)`; `backlog` default 128. Requests come as `connect-request`; without a listener they are rejected. */
  listen(backlog = 128): void {
    useBinding().native.listen(this.#native.handle, requireInteger('backlog', backlog, 0, 0x7fff_ffff));
  }

  /** `rdma_resolve_addr(3)`; `timeout` in milliseconds, default 2000. Rejects with the event's errno, e.g. `EHOSTUNREACH`. */
  async resolveAddress(
    destination: CmAddress,
    options: { source?: CmAddress; timeout?: number } = {},
  ): Promise<void> {
    requireOptions('options', options);
    const to = checkAddress('destination', destination);
    const from = options.source === undefined ? null : checkAddress('options.source', options.source);
    const timeout = requireInteger('options.timeout', options.timeout ?? 2000, 1, 0x7fff_ffff);
    const { native } = useBinding();
    await this.#wait(
      {
        succeeds: 'address-resolved',
        fails: 'address-error',
        syscall: 'rdma_resolve_addr',
        fallback: EHOSTUNREACH,
        destination: to,
      },
      () => native.resolveAddress(this.#native.handle, from, to, timeout),
    );
  }

  /** `rdma_resolve_route(3)`; `timeout` in milliseconds, default 2000. */
  async resolveRoute(options: { timeout?: number } = {}): Promise<void> {
    requireOptions('options', options);
    const timeout = requireInteger('options.timeout', options.timeout ?? 2000, 1, 0x7fff_ffff);
    const { native } = useBinding();
    await this.#wait(
      {
        succeeds: 'route-resolved',
        fails: 'route-error',
        syscall: 'rdma_resolve_route',
        fallback: ETIMEDOUT,
        destination: undefined,
      },
      () => native.resolveRoute(this.#native.handle, timeout),
    );
  }

  /** `rdma_create_qp(3)`: the id must have a device, that is be resolved, or come with a request. */
  createQueuePair(pd: ProtectionDomain, options: QueuePairOptions): QueuePair {
    return new QueuePair(pd, options, this.#native);
  }

  /**
   * `rdma_connect(3)`. Resolves when the call has returned; what the peer says comes as `established`, `rejected`,
   * `unreachable` or `connect-error`. siw makes the TCP connection inside this call and rejects with its errno.
   * Rejects with `ERR_RDMA_CLOSED` as soon as the id is closed, though the call may still be in the kernel.
   */
  async connect(parameters: ConnectionParameters = {}): Promise<void> {
    const returned = useBinding().native.connect(this.#native.handle, checkParameters(parameters));
    const abandoned = new Promise<never>((_, reject) => {
      this.#abandonConnect = reject;
    });
    try {
      await Promise.race([returned, abandoned]);
    } finally {
      this.#abandonConnect = undefined;
    }
  }

  /** `rdma_accept(3)`, on the id of a request. On siw the queue pair can send as soon as this returns. */
  accept(parameters: ConnectionParameters = {}): void {
    useBinding().native.accept(this.#native.handle, checkParameters(parameters));
  }

  /** `rdma_reject(3)`, on the id of a request. */
  reject(privateData?: Uint8Array): void {
    useBinding().native.reject(this.#native.handle, checkPrivateData(privateData));
  }

  /**
   * `rdma_disconnect(3)`, without waiting: while {@link connect} or {@link accept} is unanswered the call is made by a
   * thread of the pool, where the kernel may hold it until there is an answer, and {@link close} waits for that. Harmless
   * when the peer was faster. Throws `ENOTCONN` on an id that has neither connected nor accepted.
   */
  disconnect(): void {
    useBinding().native.disconnect(this.#native.handle);
  }

  /** The device that the id is bound to, once it is. It needs no `close()`. */
  get device(): Device | undefined {
    if (this.#device === undefined) {
      const handle = useBinding().native.deviceOfId(this.#native.handle);
      if (handle !== 0) this.#device = new Device(handle, false);
    }
    return this.#device;
  }

  /** Both ends' addresses: `rdma_get_local_addr(3)`, `rdma_get_peer_addr(3)`. */
  get info(): NativeCmIdInfo {
    return useBinding().native.describeId(this.#native.handle);
  }

  get closed(): boolean {
    return this.#native.closed;
  }

  /**
   * `rdma_destroy_id(3)`: rejects a request that was not answered, closes the queue pair first. While `connect()` is
   * still in the kernel the id is destroyed when that returns.
   */
  close(): Promise<void> {
    return this.#native.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
