import { type CmEvent, type CmEventName, eventError } from './event.js';
import type { CmAddress } from './parameters.js';

/** What the end of a call looks like. */
interface Expectation {
  succeeds: CmEventName;
  fails: CmEventName;
  /** The multicast group that the event must be of. */
  group?: string;
  syscall: string;
  /** The errno of a failing event whose status is none. */
  fallback: number;
  destination?: CmAddress;
}

interface Pending extends Expectation {
  resolve: (event: CmEvent) => void;
  reject: (error: Error) => void;
}

/** Calls of an id that have returned, and that end with an event. */
export class PendingCalls {
  readonly #pending = new Set<Pending>();

  /** Makes the call, and resolves with the event that it succeeds with. */
  wait(expectation: Expectation, call: () => void): Promise<CmEvent> {
    call();
    return new Promise((resolve, reject) => {
      this.#pending.add({ ...expectation, resolve, reject });
    });
  }

  settle(event: CmEvent): void {
    for (const pending of this.#pending) {
      const { succeeds, fails, group, resolve, reject, syscall, fallback, destination } = pending;
      if ((event.name !== succeeds && event.name !== fails) || event.group !== group) continue;
      this.#pending.delete(pending);
      if (event.name === succeeds) resolve(event);
      else reject(eventError(event, syscall, fallback, destination?.address, destination?.port));
      return;
    }
  }

  /** No event comes any more. */
  abandon(error: Error): void {
    for (const { reject } of this.#pending) reject(error);
    this.#pending.clear();
  }

  /** Nor one of a multicast group. */
  abandonGroups(error: Error): void {
    for (const pending of this.#pending) {
      if (pending.group === undefined) continue;
      this.#pending.delete(pending);
      pending.reject(error);
    }
  }
}
