import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { useBinding } from '../binding/addon.js';
import type { NativeCmEvent, NativeCmIdInfo } from '../binding/cm.js';
import { closedError, invalidArgumentType, requireInteger, requireOneOf, requireOptions } from '../errors.js';
import { Device } from '../verbs/device.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { QueuePair, type QueuePairOptions } from '../verbs/queue-pair.js';
import { fromNativeAttributes, type QueuePairAttributes } from '../verbs/queue-pair-attributes.js';
import { rings } from '../verbs/rings.js';
import type { QueuePairType } from '../verbs/work-request.js';
import { type CmEvent, type CmEventName, toCmEvent } from './event.js';
import { EventChannel, listeners } from './event-channel.js';
import { type CmIdOptions, checkIdOptions } from './id-options.js';
import { Memberships, type MulticastGroup, type MulticastOptions } from './multicast.js';
import { NativeId } from './native-id.js';
import {
  type CmAddress,
  type ConnectionParameters,
  checkAddress,
  checkParameters,
  checkPrivateData,
} from './parameters.js';
import { PendingCalls } from './pending-calls.js';
import { type PortSpace, portSpaces, queuePairTypeOf } from './port-space.js';

/** All events by name, `connect-request` with the new id; `event` for each of them. */
export type CmIdEvents = {
  [K in CmEventName]: K extends 'connect-request' ? [event: CmEvent, id: CmId] : [event: CmEvent];
} & { event: [event: CmEvent, id: CmId] };

const ETIMEDOUT = 110;
const EHOSTUNREACH = 113;

/** What a program may know of its connection before the connection manager does: `ibv_event_type`. */
export type CmNotification = 'communication-established' | 'path-migrated';

const notifications: Readonly<Record<CmNotification, number>> = {
  'communication-established': 4,
  'path-migrated': 6,
};

/** `ibv_qp_state` */
const states = { INIT: 1, RTR: 2, RTS: 3 } as const;

/**
 * `rdma_cm_id`: one end of a connection, or a listener. The calls are those of rdma_cm; what the kernel answers is
 * emitted as events, and the two resolve steps are promises as well.
 */
export class CmId extends EventEmitter<CmIdEvents> {
  readonly portSpace: PortSpace;
  readonly #native: NativeId;
  readonly #handle: number;
  readonly #calls = new PendingCalls();
  readonly #memberships: Memberships;
  #abandonConnect: ((error: Error) => void) | undefined;
  #device: Device | undefined;

  /** `rdma_create_id(3)`; the port space is TCP by default. */
  constructor(channel: EventChannel, options?: { portSpace?: PortSpace });
  /** @internal Takes over the id of a connection request. */
  constructor(channel: EventChannel, options: { portSpace?: PortSpace }, handle: number);
  constructor(channel: EventChannel, options: { portSpace?: PortSpace } = {}, handle?: number) {
    super();
    if (!(channel instanceof EventChannel)) throw invalidArgumentType('channel', 'an EventChannel', channel);
    requireOptions('options', options);
    this.portSpace = requireOneOf(
      'options.portSpace',
      options.portSpace ?? 'TCP',
      Object.keys(portSpaces) as PortSpace[],
    );
    this.#handle = handle ?? useBinding().native.createId(channel.handle, portSpaces[this.portSpace]);
    this.#native = new NativeId(this.#handle, channel, () => this.#abandonCalls());
    this.#memberships = new Memberships(this.#native, this.#calls);
    listeners.set(this.#handle, { handleEvent: (event) => this.#handleEvent(event) });
  }

  /** Where its events come from. */
  get channel(): EventChannel {
    return this.#native.channel;
  }

  #handleEvent(native: NativeCmEvent): void {
    const event = toCmEvent(native, this.#memberships.addressOf(native.group));
    if (native.listener !== 0) {
      const id = new CmId(this.channel, { portSpace: this.portSpace }, native.id);
      // Nobody there to answer it: closing rejects.
      if (!this.emit('connect-request', event, id)) void id.close();
      this.emit('event', event, id);
      return;
    }
    this.#calls.settle(event);
    (this.emit as (name: string, event: CmEvent) => boolean).call(this, event.name, event);
    this.emit('event', event, this);
  }

  #abandonCalls(): void {
    this.#calls.abandon(closedError('CmId'));
    this.#abandonConnect?.(closedError('CmId'));
  }

  /** `rdma_set_option(3)`. */
  setOptions(options: CmIdOptions): void {
    for (const [option, value] of checkIdOptions(options)) {
      useBinding().native.setIdOption(this.#native.handle, option, value);
    }
  }

  /**
   * `rdma_migrate_id(3)`: its events, also those that nobody has seen yet, come from `channel` from now on.
   * `EBUSY` while `connect()` or leaving a multicast group is under way.
   */
  migrate(channel: EventChannel): void {
    if (!(channel instanceof EventChannel)) throw invalidArgumentType('channel', 'an EventChannel', channel);
    this.#native.migrate(channel);
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
    await this.#calls.wait(
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
    await this.#calls.wait(
      {
        succeeds: 'route-resolved',
        fails: 'route-error',
        syscall: 'rdma_resolve_route',
        fallback: ETIMEDOUT,
      },
      () => native.resolveRoute(this.#native.handle, timeout),
    );
  }

  /**
   * `rdma_create_qp(3)`: the id must have a device, that is be resolved, or come with a request. Its type is that of the
   * port space: UD, ready to send, in UDP and IPOIB, and RC in the others. Name it, and the compiler knows it as well.
   */
  createQueuePair<T extends QueuePairType = QueuePairType>(
    pd: ProtectionDomain,
    options: QueuePairOptions<T>,
  ): QueuePair<T> {
    const type = queuePairTypeOf(this.portSpace) as T;
    const queuePair = new QueuePair(pd, { type, ...options }, this.#native);
    // Without its queue pair the id is in no group, and what it was about to join is left unheard of.
    queuePair.farewell = () => this.#calls.abandonGroups(closedError('QueuePair'));
    return queuePair;
  }

  /**
   * `rdma_init_qp_attr(3)`: what `QueuePair.modify()` takes to bring a queue pair that was not made on the id to a state
   * of this connection: `INIT` when the id has a device, `RTR` and `RTS` after `connect-request` or `connect-response`.
   */
  queuePairAttributes(state: 'INIT' | 'RTR' | 'RTS'): QueuePairAttributes {
    requireOneOf('state', state, Object.keys(states) as (keyof typeof states)[]);
    return fromNativeAttributes(useBinding().native.initialAttributes(this.#native.handle, states[state]));
  }

  /**
   * `rdma_connect(3)`. Resolves when the call has returned; what the peer says comes as `established`, `rejected`,
   * `unreachable` or `connect-error`. siw makes the TCP connection inside this call and rejects with its errno.
   * Rejects with `ERR_RDMA_CLOSED` as soon as the id is closed, though the call may still be in the kernel.
   * Requests that were submitted before are posted first: receives are there before the peer can send.
   */
  async connect(parameters: ConnectionParameters = {}): Promise<void> {
    const checked = checkParameters(parameters);
    rings().requests.flush();
    const returned = useBinding().native.connect(this.#native.handle, checked);
    const abandoned = new Promise<never>((_, reject) => {
      this.#abandonConnect = reject;
    });
    try {
      await Promise.race([returned, abandoned]);
    } finally {
      this.#abandonConnect = undefined;
    }
  }

  /**
   * `rdma_accept(3)`, on the id of a request. On siw the queue pair can send as soon as this returns.
   * Requests that were submitted before are posted first: receives are there before the peer can send.
   */
  accept(parameters: ConnectionParameters = {}): void {
    const checked = checkParameters(parameters);
    rings().requests.flush();
    useBinding().native.accept(this.#native.handle, checked);
  }

  /** `rdma_reject(3)`, on the id of a request. */
  reject(privateData?: Uint8Array): void {
    useBinding().native.reject(this.#native.handle, checkPrivateData(privateData));
  }

  /**
   * `rdma_establish(3)`: on the active side, after `connect-response`, says that a queue pair of the caller's own is ready
   * for what the peer sends. `ENOTSUP` on iWARP.
   */
  establish(): void {
    useBinding().native.establish(this.#native.handle);
  }

  /**
   * `rdma_notify(3)`: tells the connection manager what the program knows of the connection, for example that something
   * has been received on a queue pair that is not `established` yet. iWARP has no use for it.
   */
  notify(event: CmNotification): void {
    requireOneOf('event', event, Object.keys(notifications));
    useBinding().native.notify(this.#native.handle, notifications[event]);
  }

  /**
   * `rdma_disconnect(3)`, without waiting: while {@link connect} or {@link accept} is unanswered the call is made by a
   * thread of the pool, where the kernel may hold it until there is an answer, and {@link close} waits for that. What is
   * outstanding on the queue pair is flushed, and what is submitted later is refused with `ENOTCONN`. Harmless when the
   * peer was faster. Throws `ENOTCONN` on an id that has neither connected nor accepted, and in the
   * port spaces of datagrams.
   */
  disconnect(): void {
    useBinding().native.disconnect(this.#native.handle);
  }

  /**
   * `rdma_join_multicast_ex(3)`, in the port spaces of datagrams, on an id that has a device: resolves with what a send to
   * the group needs. The queue pair that was made on the id before, if any, receives what is sent to the group.
   * Rejects with `ENOTSUP` on iWARP, `EADDRINUSE` where the id has joined the group before.
   */
  joinMulticast(group: string, options: MulticastOptions = {}): Promise<MulticastGroup> {
    return this.#memberships.join(group, options);
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

  [inspect.custom](_depth: number, options: object): string {
    if (this.closed) return `CmId ${inspect({ state: 'closed' }, options)}`;
    const { localAddress, localPort, remoteAddress, remotePort } = this.info;
    const device = this.device?.name;
    const shown = { device, localAddress, localPort, remoteAddress, remotePort, state: 'open' };
    return `CmId ${inspect(shown, options)}`;
  }
}
