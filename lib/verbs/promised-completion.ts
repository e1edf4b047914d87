import type { CompletionHandler } from './slot-table.js';
import type { CompletionResult, WorkCompletion } from './work-completion.js';

/** Turns the completion of one request into the settling of one promise. */
export class PromisedCompletion implements CompletionHandler {
  readonly promise: Promise<CompletionResult>;
  #resolve!: (result: CompletionResult) => void;
  #reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  complete(completion: WorkCompletion): void {
    if (completion.ok) this.#resolve(completion.result());
    else this.#reject(completion.error());
  }
}
