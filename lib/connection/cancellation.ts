import { invalidArgumentType, RdmaError, requireInteger, requireOptions } from '../errors.js';

/** How long to wait for something, and who may call it off. */
export interface WaitOptions {
  /** Rejects with an `AbortError`. What is on the wire already can be called off only by ending the connection. */
  signal?: AbortSignal | undefined;
  /** Milliseconds, then `ETIMEDOUT`; default: no limit. As with the signal, what is on the wire ends the connection. */
  timeout?: number | undefined;
}

/** What an aborted operation rejects with: `code` is `ABORT_ERR`, `cause` the signal's reason. */
export class AbortError extends Error {
  override readonly name = 'AbortError';
  readonly code = 'ABORT_ERR';

  constructor(reason: unknown) {
    super('The operation was aborted', { cause: reason });
  }
}

/** The longest delay of a timer: beyond it Node fires at once. */
export const maxDelay = 0x7fff_ffff;

export function requireSignal(name: string, signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw invalidArgumentType(name, 'an AbortSignal', signal);
}

export function requireWaitOptions(options: WaitOptions | undefined): void {
  if (options === undefined) return;
  requireOptions('options', options);
  if (options.timeout !== undefined) requireInteger('options.timeout', options.timeout, 1, maxDelay);
  requireSignal('options.signal', options.signal);
}

const nothing = () => {};

/**
 * Calls back once when a wait is called off, also when its signal was aborted before; the returned function ends the
 * watch.
 */
export function onCancel(options: WaitOptions | undefined, callback: (error: Error) => void): () => void {
  if (options === undefined) return nothing;
  const { signal, timeout } = options;
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  };
  const abort = () => {
    stop();
    callback(new AbortError(signal?.reason));
  };
  if (signal?.aborted === true) {
    abort();
    return nothing;
  }
  signal?.addEventListener('abort', abort);
  if (timeout !== undefined) {
    timer = setTimeout(() => {
      stop();
      callback(new RdmaError('ETIMEDOUT', `The operation took longer than ${timeout} ms`));
    }, timeout);
  }
  return stop;
}
