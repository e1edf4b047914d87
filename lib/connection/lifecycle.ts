/** A promise of a connection that exists once somebody has looked at it. */
class Milestone {
  #promise: Promise<void> | undefined;
  #resolve = () => {};
  #reject: (error: Error) => void = () => {};
  readonly #onSettled: (() => void)[] = [];
  #outcome: { error: Error | undefined } | undefined;

  get promise(): Promise<void> {
    if (this.#promise === undefined) {
      this.#promise = new Promise((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
      });
      if (this.#outcome !== undefined) {
        // Whoever looks this late has been told by other means.
        this.#promise.catch(() => {});
        this.#apply();
      }
    }
    return this.#promise;
  }

  /** Resolved, never rejected, once it is settled. */
  get outcome(): Promise<void> {
    if (this.#outcome !== undefined) return Promise.resolve();
    return new Promise((resolve) => this.#onSettled.push(resolve));
  }

  /** Somebody has looked at it and waits. */
  get awaited(): boolean {
    return this.#promise !== undefined && this.#outcome === undefined;
  }

  settle(error: Error | undefined): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { error };
    this.#apply();
    for (const settled of this.#onSettled.splice(0)) settled();
  }

  /** Its rejection is nobody's only news of the error. */
  excuse(): void {
    this.#promise?.catch(() => {});
  }

  #apply(): void {
    const { error } = this.#outcome!;
    if (error === undefined) this.#resolve();
    else this.#reject(error);
  }
}

/**
 * The milestones of a connection, and who tells of the error that ended it: one promise at least, or else the event.
 * A promise that nobody asked for does not count, and does not become an unhandled rejection either.
 */
export class Lifecycle {
  readonly established = new Milestone();
  readonly ready = new Milestone();
  readonly closed = new Milestone();
  #carried = false;

  /** A promise of the user's was rejected with the error that ended the connection. */
  errorCarried(): void {
    this.#carried = true;
  }

  /** The connection ends: what was not reached will not be. Resolved where the end was wished for by the peer or here. */
  end(error: Error): void {
    for (const milestone of [this.established, this.ready]) {
      if (milestone.awaited) this.#tell(milestone);
      milestone.settle(error);
    }
  }

  /** The connection has ended; whether the error still has to be emitted. */
  close(error: Error | undefined, hasErrorListener: boolean): boolean {
    if (error === undefined) {
      this.closed.settle(undefined);
      return false;
    }
    if (hasErrorListener) this.closed.excuse();
    if (this.closed.awaited) this.#tell(this.closed);
    this.closed.settle(error);
    return !this.#carried;
  }

  #tell(milestone: Milestone): void {
    if (this.#carried) milestone.excuse();
    this.#carried = true;
  }
}
