import { invalidArgumentType } from '../errors.js';
import type { WorkCompletion } from './work-completion.js';

/** Takes the completion of one work request. Exactly one comes for each that was posted. */
export interface CompletionHandler {
  /** Called once, in the callback of the completion queue. */
  complete(completion: WorkCompletion): void;
}

export function requireHandler(handler: CompletionHandler): void {
  if (typeof handler?.complete === 'function') return;
  throw invalidArgumentType('handler', 'an object with a function complete', handler);
}

/** The end of the free list. */
const none = 0xffff_ffff;

/**
 * The handlers of the work requests in flight. A slot and its generation are the two halves of a `wr_id`; a
 * generation that does not match marks a completion that nobody waits for any more.
 */
export class SlotTable {
  #handlers: (CompletionHandler | undefined)[] = [];
  #generations: Uint32Array = new Uint32Array(256);
  #next: Uint32Array = new Uint32Array(256);
  #free = none;
  #inUse = 0;

  /** Handlers waiting. */
  get size(): number {
    return this.#inUse;
  }

  /** Keeps a handler; returns the slot that its request is posted with. */
  acquire(handler: CompletionHandler): number {
    let slot = this.#free;
    if (slot === none) {
      slot = this.#handlers.length;
      if (slot === this.#generations.length) this.#grow();
      this.#handlers.push(undefined);
    } else {
      this.#free = this.#next[slot]!;
    }
    this.#handlers[slot] = handler;
    this.#inUse++;
    return slot;
  }

  /** The second half of the `wr_id` for a slot that is in use. */
  generation(slot: number): number {
    return this.#generations[slot]!;
  }

  /** Gives a slot back and returns its handler; undefined when slot or generation is not one in use. */
  release(slot: number, generation: number): CompletionHandler | undefined {
    const handler = this.#handlers[slot];
    if (handler === undefined || this.#generations[slot] !== generation) return undefined;
    this.#handlers[slot] = undefined;
    this.#generations[slot] = (generation + 1) >>> 0;
    this.#next[slot] = this.#free;
    this.#free = slot;
    this.#inUse--;
    return handler;
  }

  #grow(): void {
    const generations = new Uint32Array(this.#generations.length * 2);
    generations.set(this.#generations);
    this.#generations = generations;
    const next = new Uint32Array(this.#next.length * 2);
    next.set(this.#next);
    this.#next = next;
  }
}
