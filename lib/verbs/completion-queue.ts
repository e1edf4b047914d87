import { setHook, useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { invalidArgumentType, requireInteger, requireOneOf, requireOptions } from '../errors.js';
import { type AsyncEvents, asyncEvents, type CompletionQueueEventName } from './async-event.js';
import { CompletionChannel } from './completion-channel.js';
import { type CompletionField, completionFieldMask } from './completion-field.js';
import { Device } from './device.js';
import { rings } from './rings.js';
import type { WorkCompletion } from './work-completion.js';

const waitings = ['manual', 'event', 'poll', 'adaptive'] as const;

/**
 * How a completion queue is watched. `event`: sleep until the channel wakes the loop. `poll`: every turn of the loop
 * polls and none sleeps. `adaptive`: spin for a bounded time after traffic, then as `event`. `manual`: only `poll()`.
 */
export type Waiting = (typeof waitings)[number];

/** How a completion queue is made: `ibv_create_cq(3)`. */
export interface CompletionQueueOptions {
  /** Least number of entries the queue holds. */
  entries: number;
  /** Default: a channel of its own, unless `waiting` is `poll` or `manual`. */
  channel?: CompletionChannel;
  /** Default `adaptive`. */
  waiting?: Waiting;
  /** Longest spin after a wake-up, in microseconds, 0 to 1000; default 200. `adaptive` only. */
  spin?: number;
  /**
   * Takes every completion instead of the handlers that requests were posted with. The window it is given moves:
   * it is valid during the call only.
   */
  onCompletion?: (completion: WorkCompletion) => void;
  /**
   * Makes it an extended queue, whose completions have these fields too. `ENOTSUP` where the provider has them not:
   * `capabilities.completionFields`. Default: none.
   */
  fields?: readonly CompletionField[];
}

const queues = new Map<number, WeakRef<CompletionQueue>>();

setHook('onCompletions', (handle, first, count) => {
  const { control, completion, slots, consumed, inUse } = rings();
  const onCompletion = queues.get(handle)?.deref()?.onCompletion;
  control[inUse] = 1;
  for (let index = first; index < first + count; index++) {
    completion.moveTo(index);
    // Counted before the handler runs: one that throws has had its completion, the rest is delivered again.
    control[consumed] = index + 1;
    if (onCompletion !== undefined) onCompletion(completion);
    else slots.release(completion.slot, completion.generation)?.complete(completion);
  }
  control[inUse] = 0;
});

function create(
  device: Device,
  entries: number,
  channel: CompletionChannel | undefined,
  ownChannel: CompletionChannel | undefined,
  fields: number,
): { handle: number; entries: number } {
  try {
    return useBinding().native.createCompletionQueue(device.handle, entries, channel?.handle ?? 0, fields);
  } catch (error) {
    void ownChannel?.close();
    throw error;
  }
}

/** `ibv_cq`. */
export class CompletionQueue extends NativeObject {
  readonly device: Device;
  /** Takes every completion, if it was given. */
  readonly onCompletion: ((completion: WorkCompletion) => void) | undefined;
  readonly #ownChannel: CompletionChannel | undefined;
  readonly #handle: number;
  #entries: number;
  #events: AsyncEvents<CompletionQueueEventName> | undefined;

  /** `ibv_create_cq(3)`, with `fields` `ibv_create_cq_ex(3)`. */
  constructor(device: Device, options: CompletionQueueOptions) {
    if (options === undefined) throw invalidArgumentType('options', 'an object', options);
    requireOptions('options', options);
    if (!(device instanceof Device)) throw invalidArgumentType('device', 'a Device', device);
    const entries = requireInteger('options.entries', options.entries, 1, 0x7fff_ffff);
    const waiting = requireOneOf('options.waiting', options.waiting ?? 'adaptive', waitings);
    const spin = requireInteger('options.spin', options.spin ?? 200, 0, 1000);
    const { onCompletion, channel: given } = options;
    const fields = completionFieldMask(options.fields ?? []);
    if (onCompletion !== undefined && typeof onCompletion !== 'function') {
      throw invalidArgumentType('options.onCompletion', 'a function', onCompletion);
    }
    if (given !== undefined && !(given instanceof CompletionChannel)) {
      throw invalidArgumentType('options.channel', 'a CompletionChannel', given);
    }
    const sleeps = waiting === 'event' || waiting === 'adaptive';
    const ownChannel = given === undefined && sleeps ? new CompletionChannel(device) : undefined;
    const channel = given ?? ownChannel;
    const { native } = useBinding();
    const cq = create(device, entries, channel, ownChannel, fields);
    const destroy = (handle: number) => {
      queues.delete(handle);
      return native.destroyCompletionQueue(handle);
    };
    super('CompletionQueue', 4, cq.handle, destroy, channel === undefined ? [device] : [device, channel]);
    this.device = device;
    this.#handle = cq.handle;
    this.#entries = cq.entries;
    this.onCompletion = onCompletion;
    this.#ownChannel = ownChannel;
    queues.set(cq.handle, new WeakRef(this));
    native.setCompletionQueueWaiting(cq.handle, waitings.indexOf(waiting), spin);
  }

  /** What the device gave: at least what was asked for. */
  get entries(): number {
    return this.#entries;
  }

  protected override details(): object {
    return { entries: this.#entries };
  }

  /** `cq-err`: the queue has overrun, and completions are lost: `ibv_get_async_event(3)`. */
  get events(): AsyncEvents<CompletionQueueEventName> {
    this.#events ??= asyncEvents(this.#handle);
    return this.#events;
  }

  /**
   * `ibv_resize_cq(3)`: at least `entries`, and no fewer than wait in it. Throws `ENOTSUP` where the provider can't:
   * `capabilities.resizeCompletionQueue`.
   */
  resize(entries: number): void {
    requireInteger('entries', entries, 1, 0x7fff_ffff);
    this.#entries = useBinding().native.resizeCompletionQueue(this.handle, entries);
  }

  /**
   * Interrupt moderation, `ibv_modify_cq(3)`: wakes the loop after `count` completions or `period` microseconds, each 0 to
   * 65535. Throws `ENOTSUP` where the provider can't: `capabilities.completionModeration`.
   */
  moderate(count: number, period: number): void {
    requireInteger('count', count, 0, 0xffff);
    requireInteger('period', period, 0, 0xffff);
    useBinding().native.moderateCompletionQueue(this.handle, count, period);
  }

  /** Delivers at most `limit` completions to their handlers now; the number delivered. */
  poll(limit = 64): number {
    return useBinding().native.pollCompletionQueue(
      this.handle,
      requireInteger('limit', limit, 1, 0x7fff_ffff),
    );
  }

  /** The queue keeps the process alive (the default). */
  ref(): this {
    useBinding().native.referenceCompletionQueue(this.handle, true);
    return this;
  }

  /** The queue does not keep the process alive. */
  unref(): this {
    useBinding().native.referenceCompletionQueue(this.handle, false);
    return this;
  }

  /** `ibv_destroy_cq(3)`, after the queue pairs that complete here. */
  override async close(): Promise<void> {
    await super.close();
    await this.#ownChannel?.close();
  }
}
