/** The objects of a stand-in by their handles, as the addon's HandleTable keeps them. */
export class Objects {
  readonly #objects = new Map<number, object>();
  #next = 0;

  add(make: (handle: number) => object): number {
    const handle = ++this.#next;
    this.#objects.set(handle, make(handle));
    return handle;
  }

  remove(handle: number): void {
    this.#objects.delete(handle);
  }

  /** @throws TypeError for a handle that is none of that kind */
  get<T extends object>(kind: abstract new (...args: never[]) => T, handle: number): T {
    const object = this.find(kind, handle);
    if (object === undefined) throw new TypeError(`The handle ${handle} is no open ${kind.name}`);
    return object;
  }

  find<T extends object>(kind: abstract new (...args: never[]) => T, handle: number): T | undefined {
    const object = this.#objects.get(handle);
    return object instanceof kind ? object : undefined;
  }

  *all<T extends object>(kind: abstract new (...args: never[]) => T): Generator<T> {
    for (const object of this.#objects.values()) if (object instanceof kind) yield object;
  }

  /** How many there are of each kind. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const object of this.#objects.values()) {
      const kind = object.constructor.name;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    return counts;
  }
}
