import { closedError } from '../errors.js';

interface Abandoned {
  /** Whether its owner was to close it. */
  owned: boolean;
  kind: string;
  handle: number;
  destroy: (handle: number) => unknown;
}

const registry = new FinalizationRegistry<Abandoned>(({ owned, kind, handle, destroy }) => {
  if (owned)
    process.emitWarning(`A ${kind} was garbage-collected without close()`, {
      code: 'RDMA_NOT_CLOSED',
      type: 'RdmaWarning',
    });
  try {
    Promise.resolve(destroy(handle)).catch(() => {});
  } catch {
    // It is busy or already gone with its environment; the warning above names it.
  }
});

/**
 * One C object and its handle. An object closes what was made from it before it closes itself; the garbage
 * collector is the backstop, with a warning.
 */
export abstract class NativeObject {
  readonly #kind: string;
  readonly #handle: number;
  readonly #rank: number;
  readonly #self: WeakRef<NativeObject>;
  readonly #parents: readonly NativeObject[];
  readonly #children = new Set<WeakRef<NativeObject>>();
  #closed: Promise<void> | undefined;

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
    registry.register(this, { owned, kind, handle, destroy }, this);
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

  /** What must happen before children are closed. */
  protected beforeClose(): void {}

  async #close(): Promise<void> {
    registry.unregister(this);
    this.beforeClose();
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
