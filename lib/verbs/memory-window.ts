import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { invalidArgumentType, requireInteger, requireOptions } from '../errors.js';
import { MemoryRegion, windowAccessMask } from './memory-region.js';
import { PromisedCompletion } from './promised-completion.js';
import { ProtectionDomain } from './protection-domain.js';
import type { QueuePair } from './queue-pair.js';
import { RemoteMemory } from './remote-memory.js';
import { rings } from './rings.js';

/** What a window opens to the peer. */
export type WindowAccess = 'remote-write' | 'remote-read' | 'remote-atomic';

/** What a window is bound to. */
export interface WindowBinding {
  /** Registered with the access `window-bind`, and with `remote-…` no more than the window shall grant. */
  region: MemoryRegion;
  /** Bytes; default 0. */
  offset?: number;
  /** Bytes, less than 4 GiB; default: to the end of the region. */
  length?: number;
  access: readonly WindowAccess[];
}

/**
 * `ibv_mw`: opens a part of a region to the peers of a queue pair, and closes it again, on the data path. Type 1 belongs to
 * its protection domain and is bound by `ibv_bind_mw(3)`; type 2 belongs to the queue pair that it is bound by, and is
 * closed by `localInvalidate` or by a peer's `sendWithInvalidate` with its {@link rkey}.
 *
 * A region can't be closed while a window is bound to it, also when a peer has invalidated that: close the window, or bind
 * it elsewhere, first.
 */
export class MemoryWindow extends NativeObject {
  readonly protectionDomain: ProtectionDomain;
  readonly type: 1 | 2;
  #rkey: number;

  /** `ibv_alloc_mw(3)`. Throws `ENOTSUP` where the device has none: `capabilities.memoryWindows`. */
  constructor(pd: ProtectionDomain, options: { type?: 1 | 2 } = {}) {
    if (!(pd instanceof ProtectionDomain)) throw invalidArgumentType('pd', 'a ProtectionDomain', pd);
    requireOptions('options', options);
    const type = requireInteger('options.type', options.type ?? 2, 1, 2) as 1 | 2;
    const { native } = useBinding();
    const { handle, rkey } = native.allocateMemoryWindow(pd.handle, type);
    // Before queue pairs: rxe lets one wait for 50 seconds that a window of type 2 is bound to (rxe_pool.c).
    super('MemoryWindow', -1, handle, (window) => native.deallocateMemoryWindow(window), [pd]);
    this.protectionDomain = pd;
    this.type = type;
    this.#rkey = rkey;
  }

  /** The remote key of the last binding. Each binding has one of its own. */
  get rkey(): number {
    return this.#rkey;
  }

  /**
   * Binds the window; resolves with what the peer needs to reach it once the binding has completed. The binding is ordered
   * with the other requests of the queue pair. A failed one ends the queue pair.
   */
  async bind(queuePair: QueuePair, binding: WindowBinding): Promise<RemoteMemory> {
    const { offset, length, mask } = this.#check(binding);
    const { region } = binding;
    if (this.type === 2) {
      // ibv_inc_rkey: the index stays, the key of eight bits is a new one.
      const rkey = ((this.#rkey & 0xffff_ff00) | ((this.#rkey + 1) & 0xff)) >>> 0;
      const bound = queuePair.submit({
        opcode: 'bindMemoryWindow',
        sges: [{ region, offset, length }],
        binding: { window: this, access: mask, rkey },
      });
      const previous = this.#rkey;
      this.#rkey = rkey;
      await bound.catch((error: unknown) => {
        if (this.#rkey === rkey) this.#rkey = previous;
        throw error;
      });
    } else {
      const { slots } = rings();
      const handler = new PromisedCompletion();
      const { native } = useBinding();
      const slot = slots.acquire(handler);
      try {
        this.#rkey = native.bindMemoryWindow(
          queuePair.handle,
          this.handle,
          region.handle,
          offset,
          length,
          mask,
          slot,
          slots.generation(slot),
        );
      } catch (error) {
        slots.release(slot, slots.generation(slot));
        throw error;
      }
      await handler.promise;
    }
    return new RemoteMemory(region.address + BigInt(offset), this.#rkey, length);
  }

  #check(binding: WindowBinding): { offset: number; length: number; mask: number } {
    if (typeof binding !== 'object' || binding === null)
      throw invalidArgumentType('binding', 'an object', binding);
    const { region, offset = 0, length, access } = binding;
    if (!(region instanceof MemoryRegion))
      throw invalidArgumentType('binding.region', 'a MemoryRegion', region);
    requireInteger('binding.offset', offset, 0, region.length);
    const rest = region.length - offset;
    const taken = length === undefined ? rest : requireInteger('binding.length', length, 0, rest);
    return { offset, length: taken, mask: windowAccessMask(access) };
  }
}
