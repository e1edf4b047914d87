import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { invalidArgumentType, requireInteger, requireOptions } from '../errors.js';
import { type AsyncEvents, asyncEvents, type SharedReceiveQueueEventName } from './async-event.js';
import { opcodes, requestFlags } from './opcode.js';
import { PromisedCompletion } from './promised-completion.js';
import { ProtectionDomain } from './protection-domain.js';
import { rings } from './rings.js';
import { type Sge, toRingSges } from './sge.js';
import { type CompletionHandler, requireHandler } from './slot-table.js';
import type { CompletionResult } from './work-completion.js';

export interface SharedReceiveQueueOptions {
  /** Receives that the queue holds, 1 to 2²⁰; default 128. */
  maxRequests?: number;
  /** Scatter elements of a receive, 1 to 16; default 1. */
  maxSges?: number;
}

/**
 * `ibv_srq`: receives that several queue pairs take from. Each receive completes on the receive completion queue of the
 * queue pair that took it; what is still posted when the queue is closed comes back as flushed.
 */
export class SharedReceiveQueue extends NativeObject {
  readonly protectionDomain: ProtectionDomain;
  /** What the device gave: at least what was asked for. */
  readonly limits: { readonly maxRequests: number; readonly maxSges: number };
  readonly #handle: number;
  #events: AsyncEvents<SharedReceiveQueueEventName> | undefined;

  /** `ibv_create_srq(3)`. */
  constructor(pd: ProtectionDomain, options: SharedReceiveQueueOptions = {}) {
    if (!(pd instanceof ProtectionDomain)) throw invalidArgumentType('pd', 'a ProtectionDomain', pd);
    requireOptions('options', options);
    const { native } = useBinding();
    const { handle, ...limits } = native.createSharedReceiveQueue(
      pd.handle,
      requireInteger('options.maxRequests', options.maxRequests ?? 128, 1, 1 << 20),
      requireInteger('options.maxSges', options.maxSges ?? 1, 1, 16),
    );
    super('SharedReceiveQueue', 1, handle, (srq) => native.destroySharedReceiveQueue(srq), [pd]);
    this.protectionDomain = pd;
    this.limits = limits;
    this.#handle = handle;
  }

  /** `srq-limit-reached`, once for each {@link arm}, and `srq-err`: `ibv_get_async_event(3)`. */
  get events(): AsyncEvents<SharedReceiveQueueEventName> {
    this.#events ??= asyncEvents(this.#handle);
    return this.#events;
  }

  /**
   * Adds a receive to the submission ring: `ibv_post_srq_recv(3)`. Its completion names the queue pair that took it. One
   * that is refused (`ENOMEM` when the queue is full) comes back as any request does.
   */
  post(request: { sges?: readonly Sge[] }, handler: CompletionHandler): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgumentType('request', 'an object', request);
    requireHandler(handler);
    const { sges = [] } = request;
    const [first, ...more] = toRingSges(sges, 'request.sges');
    const srq = this.handle;
    const { requests, slots } = rings();
    const slot = slots.acquire(handler);
    requests.submit(
      srq,
      opcodes.receive,
      requestFlags.signaled,
      slot,
      slots.generation(slot),
      first?.region ?? 0,
      first?.offset ?? 0,
      first?.length ?? 0,
      0,
      0,
      0,
      0,
      more,
    );
  }

  /** As {@link post}, with a promise. */
  submit(request: { sges?: readonly Sge[] }): Promise<CompletionResult> {
    const handler = new PromisedCompletion();
    this.post(request, handler);
    return handler.promise;
  }

  /**
   * Asks for one `srq-limit-reached` when fewer than `limit` receives are left: `ibv_modify_srq(3)`. It comes at once when
   * that is so already. 0 takes it back.
   */
  arm(limit: number): void {
    useBinding().native.armSharedReceiveQueue(
      this.handle,
      requireInteger('limit', limit, 0, this.limits.maxRequests),
    );
  }

  /** `ibv_query_srq(3)`. Throws `ENOTSUP` where the provider has none: `capabilities.querySharedReceiveQueue`. */
  query(): { maxRequests: number; maxSges: number; limit: number } {
    return useBinding().native.querySharedReceiveQueue(this.handle);
  }

  /** Receives posted and not yet completed. */
  get inFlight(): number {
    return useBinding().native.sharedReceiveQueueInFlight(this.handle);
  }

  /** Posts what is still in the submission ring, so that it comes back with the rest. */
  protected override beforeClose(): undefined {
    rings().requests.flush();
  }
}
