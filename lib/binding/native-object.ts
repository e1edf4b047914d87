import { inspect } from 'node:util';
import { closedError } from '../errors.js';

interface Abandoned {
  /** Whether its owner was to close it. */
  owned: boolean;
  kind: string;
  rank: number;
  handle: number;
  destroy: (handle: number) => unknown;
}

let abandoned: Abandoned[] = [];

const registry = new FinalizationRegistry<Abandoned>((object) => {
  if (object.owned)
    process.emitWarning(`A ${object.kind} was garbage-collected without close()`, {
      code: 'RDMA_NOT_CLOSED',
      type: 'RdmaWarning',
    });
  // The collector finds parents and children in any order, so what it found is closed together.
  if (abandoned.length === 0) setImmediate(closeAbandoned).unref();
  abandoned.push(object);
});

async function closeAbandoned(): Promise<void> {
  const objects = abandoned.sort((a, b) => a.rank - b.rank);
  abandoned = [];
  for (const { destroy, handle } of objects) {
    try {
      await destroy(handle);
    } catch {
      // It is in use by something that is still open; the warning has named it.
    }
  }
}

/**
 * One C object and its handle. An object closes what was made from it before it closes itself; the garbage
 * collector is the backstop, with a warning.
 */
export abstract class NativeObject {
  readonly #kind: string;
  readonly #handle: number;
  readonly #rank: number;
  readonly #self: WeakRef<NativeObject>;
  #parents: readonly NativeObject[];
  readonly #children = new Set<WeakRef<NativeObject>>();
  #closed: Promise<void> | undefined;
  #farewell: (() => void) | undefined;

  /**
   * `rank`: among the children of one parent the lower are closed first. `owned`: false for a view that is left to
   * the garbage collector.
   */
  protected constructor(
    kind: string,
    rank: number,
    handle: number,
    destroy: (handle: number) => unknown,
    parents: readonly NativeObject[] = [],
    owned = true,
  ) {
    this.#kind = kind;
    this.#rank = rank;
    this.#handle = handle;
    this.#parents = parents;
    this.#self = new WeakRef<NativeObject>(this);
    for (const parent of parents) parent.#children.add(this.#self);
    registry.register(this, { owned, kind, rank, handle, destroy }, this);
    this.#destroy = destroy;
  }

  readonly #destroy: (handle: number) => unknown;

  /** The native handle. Throws `ERR_RDMA_CLOSED` once `close()` was called. */
  get handle(): number {
    if (this.#closed !== undefined) throw closedError(this.#kind);
    return this.#handle;
  }

  /** Whether `close()` was called. */
  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Closes what was made from this object, then the object. May be called at any time, any number of times. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal What runs when it is being closed: for one who waits for something that does not come any more. */
  set farewell(farewell: () => void) {
    this.#farewell = farewell;
  }

  /** Makes it a child of `to` in place of `from`. */
  protected moveTo(from: NativeObject, to: NativeObject): void {
    this.#parents = this.#parents.map((parent) => (parent === from ? to : parent));
    from.#children.delete(this.#self);
    to.#children.add(this.#self);
  }

  /** What it is, in short: neither its memory nor the objects that it was made from. */
  [inspect.custom](_depth: number, options: object): string {
    const state = this.closed ? 'closed' : 'open';
    return `${this.#kind} ${inspect({ ...this.details(), state }, options)}`;
  }

  /** What tells it from others of its kind. */
  protected details(): object {
    const shown = Object.entries(this).filter(
      ([, value]) =>
        !(value instanceof NativeObject || ArrayBuffer.isView(value) || typeof value === 'function'),
    );
    return Object.fromEntries(shown);
  }

  /** What must happen before children are closed, at once or by the end of a promise. */
  protected beforeClose(): Promise<unknown> | undefined {
    return undefined;
  }

  async #close(): Promise<void> {
    registry.unregister(this);
    this.#farewell?.();
    const before = this.beforeClose();
    if (before !== undefined) await before;
    const children = [...this.#children].map((child) => child.deref()).filter((child) => child !== undefined);
    children.sort((a, b) => a.#rank - b.#rank);
    const ranks = new Set(children.map((child) => child.#rank));
    for (const rank of ranks) {
      await Promise.all(children.filter((child) => child.#rank === rank).map((child) => child.close()));
    }
    await this.#destroy(this.#handle);
    for (const parent of this.#parents) parent.#children.delete(this.#self);
  }
}
