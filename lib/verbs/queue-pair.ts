import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import type { NativeQueuePair, NativeQueuePairAttributes } from '../binding/verbs.js';
import { invalidArgumentType, requireInteger, requireOneOf, requireOptions } from '../errors.js';
import { CompletionQueue } from './completion-queue.js';
import { MemoryRegion } from './memory-region.js';
import { type Opcode, opcodes, requestFlags } from './opcode.js';
import { ProtectionDomain } from './protection-domain.js';
import { RemoteMemory } from './remote-memory.js';
import { RequestRing, type RingSge } from './request-ring.js';
import { rings } from './rings.js';
import type { CompletionHandler } from './slot-table.js';
import type { CompletionResult, WorkCompletion } from './work-completion.js';

/** A part of a registered region: `ibv_sge`. */
export interface Sge {
  region: MemoryRegion;
  /** Bytes; default 0. */
  offset?: number;
  /** Bytes; default: to the end of the region. */
  length?: number;
}

/** `ibv_send_wr` or `ibv_recv_wr`. */
export interface WorkRequest {
  opcode: Opcode;
  /** Default: no data. At most the queue pair's limit; 1 for a Read on siw. */
  sges?: readonly Sge[];
  /** For Write, Read and atomics. */
  remote?: RemoteMemory;
  /** 32 bits, for the opcodes with immediate data; the rkey for those that invalidate. */
  immediate?: number;
  /** `IBV_SEND_FENCE`: wait for earlier Reads and atomics. */
  fence?: boolean;
  /** `IBV_SEND_SOLICITED`. */
  solicited?: boolean;
  /** `IBV_SEND_INLINE`: the data is copied when the request is posted. */
  inline?: boolean;
  /** Operands of atomics, 64 bits. */
  compareAdd?: bigint;
  swap?: bigint;
}

export interface QueuePairOptions {
  sendCompletionQueue: CompletionQueue;
  receiveCompletionQueue: CompletionQueue;
  /** Default `RC`. */
  type?: 'RC' | 'UC' | 'UD';
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

export type QueuePairAttributes = NativeQueuePairAttributes;

const types = { RC: 2, UC: 3, UD: 4 } as const;
const states = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'] as const;
export type QueuePairState = (typeof states)[number] | 'UNKNOWN';

/** Turns the completion of one request into the settling of one promise. */
class PromisedCompletion implements CompletionHandler {
  readonly promise: Promise<CompletionResult>;
  #resolve!: (result: CompletionResult) => void;
  #reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  complete(completion: WorkCompletion): void {
    if (completion.ok) this.#resolve(completion.result());
    else this.#reject(completion.error());
  }
}

/** `ibv_qp`. */
export class QueuePair extends NativeObject {
  readonly protectionDomain: ProtectionDomain;
  /** `qp_num`. */
  readonly number: number;
  /** What the device gave: at least what was asked for. */
  readonly limits: Readonly<Omit<NativeQueuePair, 'handle' | 'number'>>;
  readonly #handle: number;

  /** `ibv_create_qp(3)`, or `rdma_create_qp(3)` where `cmId` names one: use `CmId.createQueuePair` for that. */
  constructor(pd: ProtectionDomain, options: QueuePairOptions, cmId?: NativeObject) {
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
    const type = requireOneOf('options.type', options.type ?? 'RC', ['RC', 'UC', 'UD'] as const);
    const limit = (name: keyof QueuePairOptions, fallback: number, max: number) =>
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
    });
    const parents = cmId === undefined ? [pd, sendCq, receiveCq] : [pd, sendCq, receiveCq, cmId];
    super('QueuePair', 0, handle, (qp) => native.destroyQueuePair(qp), parents);
    this.protectionDomain = pd;
    this.number = number;
    this.limits = limits;
    this.#handle = handle;
  }

  /**
   * Adds a request to the submission ring; `handler` gets its one completion, also when the request is refused
   * before the device sees it. The data must stay untouched until then.
   */
  post(request: WorkRequest, handler: CompletionHandler): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgumentType('request', 'an object', request);
    const opcode = opcodes[requireOneOf('request.opcode', request.opcode, Object.keys(opcodes) as Opcode[])];
    if (typeof handler?.complete !== 'function') {
      throw invalidArgumentType('handler', 'an object with a function complete', handler);
    }
    const { remote, immediate = 0, compareAdd, swap, sges: elements = [] } = request;
    if (!Array.isArray(elements)) throw invalidArgumentType('request.sges', 'an array', elements);
    requireInteger('request.sges.length', elements.length, 0, RequestRing.maxSges);
    const sges = elements.map((sge: Sge, i) => this.#sge(sge, `request.sges[${i}]`));
    for (const [name, operand] of Object.entries({ compareAdd, swap })) {
      if (operand !== undefined && typeof operand !== 'bigint') {
        throw invalidArgumentType(`request.${name}`, 'a bigint', operand);
      }
    }
    if (remote !== undefined && !(remote instanceof RemoteMemory)) {
      throw invalidArgumentType('request.remote', 'a RemoteMemory', remote);
    }
    requireInteger('request.immediate', immediate, 0, 0xffff_ffff);
    const flags =
      requestFlags.signaled |
      (request.fence === true ? requestFlags.fence : 0) |
      (request.solicited === true ? requestFlags.solicited : 0) |
      (request.inline === true ? requestFlags.inline : 0);
    const queuePair = this.handle;
    const { requests, slots } = rings();
    const [first, ...more] = sges;
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
      remote?.addressLow,
      remote?.addressHigh,
      remote?.rkey,
      immediate,
      more,
      compareAdd,
      swap,
    );
  }

  /** As {@link post}, with a promise: rejects with a {@link WorkCompletionError}. */
  submit(request: WorkRequest): Promise<CompletionResult> {
    const handler = new PromisedCompletion();
    this.post(request, handler);
    return handler.promise;
  }

  #sge(sge: Sge, name: string): RingSge {
    if (typeof sge !== 'object' || sge === null || !(sge.region instanceof MemoryRegion)) {
      throw invalidArgumentType(name, 'an object with a MemoryRegion as region', sge);
    }
    const { region, offset = 0, length } = sge;
    requireInteger(`${name}.offset`, offset, 0, region.length);
    const rest = region.length - offset;
    const taken = length === undefined ? rest : requireInteger(`${name}.length`, length, 0, rest);
    return { region: region.handle, offset, length: taken };
  }

  /** `ibv_modify_qp(3)`; the mask follows from the attributes that are present. */
  modify(attributes: QueuePairAttributes): void {
    if (typeof attributes !== 'object' || attributes === null) {
      throw invalidArgumentType('attributes', 'an object', attributes);
    }
    useBinding().native.modifyQueuePair(this.handle, attributes);
  }

  /** `ibv_query_qp(3)`. */
  query(): { state: QueuePairState; maxRdAtomic: number; maxDestRdAtomic: number } {
    const { state, ...depths } = useBinding().native.queryQueuePair(this.handle);
    return { state: states[state] ?? 'UNKNOWN', ...depths };
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

  /** @internal The handle that completions carry, also after close. */
  get completionKey(): number {
    return this.#handle;
  }
}
