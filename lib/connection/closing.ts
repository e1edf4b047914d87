import { constants } from 'node:os';
import { closedError, RdmaError } from '../errors.js';
import type { ReceiveQueue } from './receive-queue.js';
import type { SendQueue } from './send-queue.js';

/** The longest that an orderly end may take, in milliseconds. */
export const closeTimeout = 5000;

/**
 * The orderly end of a connection. Without credits it comes when all that was sent has completed. With credits both
 * sides say goodbye behind their last message: who has said it and hears it knows that everything has arrived, both
 * ways. Then the side that said it first disconnects, while the other waits for that: it can't know whether its own
 * goodbye has arrived, and closing a TCP connection on data that comes in destroys what is still on its way out.
 */
export class Closing {
  readonly #sends: SendQueue;
  readonly #receives: ReceiveQueue;
  readonly #finish: (reason: Error | undefined) => void;
  #timer: NodeJS.Timeout | undefined;
  #begun = false;
  #sent = false;
  #heard = false;
  #saidFirst = false;

  /** `finish`: ends the connection; the reason is for what could not be sent. */
  constructor(sends: SendQueue, receives: ReceiveQueue, finish: (reason: Error | undefined) => void) {
    this.#sends = sends;
    this.#receives = receives;
    this.#finish = finish;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** The peer has said goodbye. */
  get heard(): boolean {
    return this.#heard;
  }

  /** `phase`: `opening` while it is not known whether there are credits. */
  begin(phase: 'opening' | 'plain' | 'credits', timeout: number): void {
    if (this.#begun) return;
    this.#begin(closedError('connection'), timeout);
    if (phase === 'opening' && this.#sends.idle) this.#finish(undefined);
    else if (phase !== 'opening') this.proceed(phase);
  }

  /** It is known whether there are credits. */
  proceed(phase: 'plain' | 'credits'): void {
    if (!this.#begun) return;
    if (phase === 'credits') {
      // Nobody may read any more, and the peer may have to send before it can say goodbye.
      if (!this.#heard) this.#receives.stopHolding();
      this.#sayGoodbye();
    } else if (this.#sends.idle) {
      this.#finish(undefined);
    }
  }

  hear(): void {
    this.#heard = true;
    this.#saidFirst = this.#sends.goodbyePosted;
    this.#sends.stopUpdates();
    this.#receives.end(undefined);
    if (!this.#begun) {
      const { EPIPE } = constants.errno;
      this.#begin(
        new RdmaError('EPIPE', 'The peer is closing the connection', { errno: -EPIPE }),
        closeTimeout,
      );
      this.#sayGoodbye();
    }
    this.#check();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #begin(refusal: Error, timeout: number): void {
    this.#begun = true;
    this.#sends.refuse(refusal);
    const expire = () =>
      this.#finish(
        new RdmaError('ETIMEDOUT', `The connection was closed before the peer took all, after ${timeout} ms`),
      );
    this.#timer = setTimeout(expire, timeout).unref();
  }

  #sayGoodbye(): void {
    this.#sends.sayGoodbye(() => {
      this.#sent = true;
      this.#check();
    });
  }

  #check(): void {
    if (this.#sent && this.#heard && this.#saidFirst) this.#finish(undefined);
  }
}
