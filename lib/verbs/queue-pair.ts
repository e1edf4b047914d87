import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import type { NativeQueuePair } from '../binding/verbs.js';
import { invalidArgumentType, requireInteger, requireOneOf, requireOptions } from '../errors.js';
import { AddressHandle } from './address-handle.js';
import { requireGid } from './address-vector.js';
import { type AsyncEvents, asyncEvents, type QueuePairEventName } from './async-event.js';
import { CompletionQueue } from './completion-queue.js';
import { MemoryWindow } from './memory-window.js';
import { type Opcode, opcodes, requestFlags } from './opcode.js';
import { PromisedCompletion } from './promised-completion.js';
import { ProtectionDomain } from './protection-domain.js';
import {
  type QueuePairAttributes,
  type QueuePairStatus,
  toNativeAttributes,
  toStatus,
} from './queue-pair-attributes.js';
import { RemoteMemory } from './remote-memory.js';
import { rings } from './rings.js';
import { toRingSges } from './sge.js';
import { SharedReceiveQueue } from './shared-receive-queue.js';
import { type CompletionHandler, requireHandler } from './slot-table.js';
import type { CompletionResult } from './work-completion.js';
import type { AnyRequest, QueuePairType, WorkRequest } from './work-request.js';

/** How a queue pair is made: `ibv_create_qp(3)`. */
export interface QueuePairOptions<T extends QueuePairType = QueuePairType> {
  sendCompletionQueue: CompletionQueue;
  receiveCompletionQueue: CompletionQueue;
  /** Takes the place of a receive queue: `maxReceiveRequests` and `maxReceiveSges` mean nothing then. */
  sharedReceiveQueue?: SharedReceiveQueue;
  /** Reliable connection, unreliable connection or datagrams; on iWARP `RC` only, else `ENOTSUP`. Default `RC`. */
  type?: T;
  /** Work requests that the send queue holds; default 128. */
  maxSendRequests?: number;
  /** Work requests that the receive queue holds; default 128. */
  maxReceiveRequests?: number;
  /** Gather elements of a request; default 1. */
  maxSendSges?: number;
  /** Scatter elements of a receive; default 1. */
  maxReceiveSges?: number;
  /** Bytes that can be sent inline; default 0. */
  maxInlineData?: number;
}

const types = { RC: 2, UC: 3, UD: 4 } as const;

/** What goes into the place of a remote address and its key: `native/ring/records.h`. */
function remoteHalves({
  remote,
  destination,
  binding,
}: AnyRequest): readonly [low: number, high: number, key: number] {
  if (remote !== undefined) {
    if (!(remote instanceof RemoteMemory))
      throw invalidArgumentType('request.remote', 'a RemoteMemory', remote);
    return [remote.addressLow, remote.addressHigh, remote.rkey];
  }
  if (destination !== undefined) {
    if (typeof destination !== 'object' || !(destination?.addressHandle instanceof AddressHandle)) {
      throw invalidArgumentType('request.destination', 'an object with an AddressHandle', destination);
    }
    const { addressHandle, queuePairNumber, qkey } = destination;
    return [
      addressHandle.handle,
      requireInteger('request.destination.queuePairNumber', queuePairNumber, 0, 0xff_ffff),
      requireInteger('request.destination.qkey', qkey, 0, 0xffff_ffff),
    ];
  }
  if (binding !== undefined) {
    if (typeof binding !== 'object' || !(binding?.window instanceof MemoryWindow)) {
      throw invalidArgumentType('request.binding', 'an object with a MemoryWindow', binding);
    }
    const { window, access, rkey } = binding;
    return [
      window.handle,
      requireInteger('request.binding.access', access, 0, 0xe),
      requireInteger('request.binding.rkey', rkey, 0, 0xffff_ffff),
    ];
  }
  return [0, 0, 0];
}

/** `ibv_qp`. What can be posted to it depends on its type. */
export class QueuePair<T extends QueuePairType = QueuePairType> extends NativeObject {
  readonly protectionDomain: ProtectionDomain;
  /** `qp_num`. */
  readonly number: number;
  /** What the device gave: at least what was asked for. */
  readonly limits: Readonly<Omit<NativeQueuePair, 'handle' | 'number'>>;
  readonly type: T;
  readonly #handle: number;
  #events: AsyncEvents<QueuePairEventName> | undefined;

  /** `ibv_create_qp(3)`, or `rdma_create_qp(3)` where `cmId` names one: use `CmId.createQueuePair` for that. */
  constructor(pd: ProtectionDomain, options: QueuePairOptions<T>, cmId?: NativeObject) {
    if (!(pd instanceof ProtectionDomain)) throw invalidArgumentType('pd', 'a ProtectionDomain', pd);
    if (options === undefined) throw invalidArgumentType('options', 'an object', options);
    requireOptions('options', options);
    const { sendCompletionQueue: sendCq, receiveCompletionQueue: receiveCq } = options;
    for (const [name, cq] of Object.entries({
      sendCompletionQueue: sendCq,
      receiveCompletionQueue: receiveCq,
    })) {
      if (!(cq instanceof CompletionQueue))
        throw invalidArgumentType(`options.${name}`, 'a CompletionQueue', cq);
    }
    const { sharedReceiveQueue: srq } = options;
    if (srq !== undefined && !(srq instanceof SharedReceiveQueue)) {
      throw invalidArgumentType('options.sharedReceiveQueue', 'a SharedReceiveQueue', srq);
    }
    const type = requireOneOf('options.type', options.type ?? 'RC', ['RC', 'UC', 'UD'] as const);
    const limit = (name: keyof QueuePairOptions<T>, fallback: number, max: number) =>
      requireInteger(`options.${name}`, options[name] ?? fallback, 0, max);
    const { native } = useBinding();
    const { handle, number, ...limits } = native.createQueuePair({
      pd: pd.handle,
      sendCq: sendCq.handle,
      receiveCq: receiveCq.handle,
      type: types[type],
      maxSendWr: limit('maxSendRequests', 128, 1 << 20),
      maxReceiveWr: limit('maxReceiveRequests', 128, 1 << 20),
      maxSendSge: limit('maxSendSges', 1, 16),
      maxReceiveSge: limit('maxReceiveSges', 1, 16),
      maxInlineData: limit('maxInlineData', 0, 1 << 16),
      cmId: cmId?.handle ?? 0,
      srq: srq?.handle ?? 0,
    });
    const parents = [pd, sendCq, receiveCq, cmId, srq].filter((parent) => parent !== undefined);
    super('QueuePair', 0, handle, (qp) => native.destroyQueuePair(qp), parents);
    this.protectionDomain = pd;
    this.type = type as T;
    this.number = number;
    this.limits = limits;
    this.#handle = handle;
  }

  /**
   * Adds a request to the submission ring; `handler` gets its one completion, also when the request is refused
   * before the device sees it. The data must stay untouched until then.
   */
  post(request: WorkRequest<T>, handler: CompletionHandler): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgumentType('request', 'an object', request);
    const opcode = opcodes[requireOneOf('request.opcode', request.opcode, Object.keys(opcodes) as Opcode[])];
    requireHandler(handler);
    const parts: AnyRequest = request;
    const { immediate = 0, compareAdd, swap, sges = [] } = parts;
    const [first, ...more] = toRingSges(sges, 'request.sges');
    for (const [name, operand] of Object.entries({ compareAdd, swap })) {
      if (operand !== undefined && typeof operand !== 'bigint') {
        throw invalidArgumentType(`request.${name}`, 'a bigint', operand);
      }
    }
    requireInteger('request.immediate', immediate, 0, 0xffff_ffff);
    const flags =
      requestFlags.signaled |
      (parts.fence === true ? requestFlags.fence : 0) |
      (parts.solicited === true ? requestFlags.solicited : 0) |
      (parts.inline === true ? requestFlags.inline : 0);
    const queuePair = this.handle;
    const { requests, slots } = rings();
    const [low, high, key] = remoteHalves(parts);
    const slot = slots.acquire(handler);
    requests.submit(
      queuePair,
      opcode,
      flags,
      slot,
      slots.generation(slot),
      first?.region ?? 0,
      first?.offset ?? 0,
      first?.length ?? 0,
      low,
      high,
      key,
      immediate,
      more,
      compareAdd,
      swap,
    );
  }

  /** As {@link post}, with a promise: rejects with a {@link WorkCompletionError}. */
  submit(request: WorkRequest<T>): Promise<CompletionResult> {
    const handler = new PromisedCompletion();
    this.post(request, handler);
    return handler.promise;
  }

  /** `qp-last-wqe-reached`, `qp-fatal` and the other events of a queue pair: `ibv_get_async_event(3)`. */
  get events(): AsyncEvents<QueuePairEventName> {
    this.#events ??= asyncEvents(this.#handle);
    return this.#events;
  }

  /**
   * `ibv_modify_qp(3)`; the mask follows from the attributes that are present. Which are needed and which are allowed in a
   * transition depends on the type: the tables are in that page. Throws `EINVAL` for another.
   */
  modify(attributes: QueuePairAttributes): void {
    useBinding().native.modifyQueuePair(this.handle, toNativeAttributes(attributes));
  }

  /** `ibv_query_qp(3)`: everything. siw tells its state, its depths and its sizes only; the rest is 0. */
  query(): QueuePairStatus {
    return toStatus(useBinding().native.queryQueuePair(this.handle));
  }

  /**
   * Takes part in a multicast group, UD only: `ibv_attach_mcast(3)`. `gid`: 16 bytes; `lid`: InfiniBand only. Throws
   * `ENOTSUP` on iWARP. The network learns of it by `CmId` or a subnet manager, not by this.
   */
  attachMulticast(gid: Uint8Array, lid = 0): void {
    requireInteger('lid', lid, 0, 0xffff);
    useBinding().native.attachMulticast(this.handle, requireGid('gid', gid), lid);
  }

  /** `ibv_detach_mcast(3)`. */
  detachMulticast(gid: Uint8Array, lid = 0): void {
    requireInteger('lid', lid, 0, 0xffff);
    useBinding().native.detachMulticast(this.handle, requireGid('gid', gid), lid);
  }

  /** Work requests posted and not yet completed. */
  get inFlight(): { send: number; receive: number } {
    const [send, receive] = useBinding().native.queuePairInFlight(this.handle);
    return { send, receive };
  }

  /** Posts what is still in the submission ring, so that it fails or completes before the queue pair goes. */
  protected override beforeClose(): undefined {
    rings().requests.flush();
  }

  /** What completions of this queue pair carry as `queuePair`, also after close. */
  get completionKey(): number {
    return this.#handle;
  }
}
