import { hostname } from 'node:os';
import { AbortError, onCancel, type WaitOptions } from '../connection/cancellation.js';
import { RdmaError } from '../errors.js';

/** What a launcher gives its ranks to find one another with. */
export interface KeyValueSpace {
  /** Unique among the jobs of the launcher. */
  readonly namespace: string;
  readonly rank: number;
  readonly size: number;
  /** Rank among those of the same node. */
  readonly localRank: number;
  /** Publishes a value of this rank's. */
  put(key: string, value: Uint8Array): Promise<void>;
  /** The value that a rank has published; waits for it. */
  get(rank: number, key: string, options: WaitOptions): Promise<Uint8Array>;
  /** Resolves when all ranks have called it. */
  fence(options: WaitOptions): Promise<void>;
  nodeName(rank: number): Promise<string>;
  /** Ends the whole job. Blocks. */
  abort(status: number, message: string): void;
  finalize(): Promise<void>;
  /** Blocks: for the end of the process. */
  finalizeSync(): void;
}

/** A promise that can be called off; what it waits for goes on by itself. */
export function abandonable<T>(promise: Promise<T>, options: WaitOptions, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = onCancel(options, (error) => {
      if (error instanceof AbortError) reject(error);
      else reject(new RdmaError('ETIMEDOUT', `${what} took longer than ${options.timeout} ms`));
    });
    promise.then(resolve, reject).finally(stop);
  });
}

/** The space of a process that no launcher has started: a job of one. */
export class SoloSpace implements KeyValueSpace {
  readonly namespace = `solo-${process.pid}`;
  readonly rank = 0;
  readonly size = 1;
  readonly localRank = 0;
  readonly #values = new Map<string, Uint8Array>();
  readonly #waiting = new Map<string, ((value: Uint8Array) => void)[]>();

  async put(key: string, value: Uint8Array): Promise<void> {
    const copy = value.slice();
    this.#values.set(key, copy);
    for (const resolve of this.#waiting.get(key) ?? []) resolve(copy);
    this.#waiting.delete(key);
  }

  get(_rank: number, key: string, options: WaitOptions): Promise<Uint8Array> {
    const value = this.#values.get(key);
    if (value !== undefined) return Promise.resolve(value);
    const coming = new Promise<Uint8Array>((resolve) => {
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve]);
    });
    return abandonable(coming, options, `getting ${key}`);
  }

  async fence(): Promise<void> {}

  async nodeName(): Promise<string> {
    return hostname();
  }

  abort(status: number): void {
    process.exit(status);
  }

  async finalize(): Promise<void> {}

  finalizeSync(): void {}
}
