import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from 'node-rdma';
import type { Result } from './messages.js';

/** Milliseconds, far beyond every time-out that a cell has: what is pending then is pending for ever. */
const forever = 100_000;

/** Milliseconds without a message, after the fault, of a connection that goes on and is no use. */
const quiet = 8_000;

const length = 1000;

/** Errors of one send alone, which leave the connection as it is, and of those that come too late for it. */
const ownErrors = new Set(['ETIMEDOUT', 'ERR_RDMA_QUEUE_FULL', 'ERR_RDMA_CLOSED', 'EPIPE']);

type Failure = Error & { code?: string };

function outcome(promise: Promise<unknown>): Promise<Failure | undefined> {
  return promise.then(
    () => undefined,
    (error: Failure) => error,
  );
}

const codeOf = (error: Failure | undefined) => (error === undefined ? 'ok' : (error.code ?? String(error)));

/** A connection, everything that its program waits for, and what must hold of that whatever happens. */
export class WatchedConnection {
  readonly connection: Connection;
  readonly #established: Promise<Failure | undefined>;
  readonly #ready: Promise<Failure | undefined>;
  readonly #closed: Promise<Failure | undefined>;
  readonly #reading: Promise<Failure | undefined>;
  readonly #sends: Promise<Failure | undefined>[] = [];
  readonly #came: number[] = [];
  readonly #broken: string[] = [];
  readonly #patience: number;
  #progressed = () => {};

  /** @param patience of its sends, in milliseconds */
  constructor(connection: Connection, patience: number) {
    this.connection = connection;
    this.#patience = patience;
    this.#established = outcome(connection.established);
    this.#ready = outcome(connection.ready);
    this.#closed = outcome(connection.closed);
    this.#reading = outcome(this.#read());
  }

  /** Resolves when it has ended. */
  get ended(): Promise<unknown> {
    return this.#closed;
  }

  /** Sends numbered messages, which the peer sends back. */
  send(count: number, timeout = this.#patience): void {
    for (let i = 0; i < count; i++) {
      const message = Buffer.alloc(length, this.#sends.length);
      message.writeUInt32LE(this.#sends.length);
      this.#sends.push(outcome(this.connection.send(message, { timeout })));
    }
  }

  /** Resolves when so many messages have come back, or none can any more. */
  async back(count: number): Promise<void> {
    let ended = false;
    const end = this.#reading.then(() => {
      ended = true;
    });
    while (this.#came.length < count && !ended) {
      await Promise.race([
        end,
        new Promise<void>((resolve) => {
          this.#progressed = resolve;
        }),
      ]);
    }
  }

  /** Resolves when the handshake takes this step. */
  step(wanted: string): Promise<void> {
    return new Promise((resolve) => {
      const listener = (message: unknown) => {
        const { connection, step } = message as { connection: Connection; step: string };
        if (connection !== this.connection || step !== wanted) return;
        unsubscribe('rdma:connection:step', listener);
        resolve();
      };
      subscribe('rdma:connection:step', listener);
    });
  }

  /** What becomes of it, with all its promises. A connection that goes on is destroyed in the end. */
  async settle(): Promise<Result> {
    const sends = await Promise.all(this.#sends.map((send, i) => this.#within(send, `send ${i}`)));
    const sent = sends.filter((error) => error === undefined).length;
    await this.#within(Promise.race([this.#allBack(sent), this.#closed]), 'the end of reading');
    const goesOn = !['closing', 'closed'].includes(this.connection.state);
    const whole = sent > 0 && this.#came.length === sent;
    if (goesOn) this.connection.destroy();
    const error = await this.#within(this.#closed, 'closed');
    await this.#within(this.#established, 'established');
    await this.#within(this.#ready, 'ready');
    await this.#within(this.#reading, 'receive()');
    this.#check(sends, error);
    const end = goesOn ? (whole ? 'whole' : 'alive') : error === undefined ? 'closed' : codeOf(error);
    return { end, sends: sends.map(codeOf), broken: this.#broken };
  }

  /** Resolves when so many messages have come back, or none has come for a while. */
  async #allBack(count: number): Promise<void> {
    for (let came = -1; came < this.#came.length && this.#came.length < count; ) {
      came = this.#came.length;
      await Promise.race([this.back(came + 1), delay(quiet, undefined, { ref: false })]);
    }
  }

  #check(sends: readonly (Failure | undefined)[], closed: Failure | undefined): void {
    const causes = new Set([closed, ...sends].filter((error) => !ownErrors.has(error?.code ?? '')));
    causes.delete(undefined);
    if (causes.size > 1) this.#broken.push(`several causes: ${[...causes].map(codeOf).join(', ')}`);
    if (this.#came.some((number, i) => i > 0 && number <= this.#came[i - 1]!)) {
      this.#broken.push(`out of order: ${this.#came.join(', ')}`);
    }
    if (this.connection.state !== 'closed') this.#broken.push(`the state is ${this.connection.state}`);
  }

  async #read(): Promise<void> {
    for (;;) {
      const message = await this.connection.receive();
      if (message === null) return;
      // What lets a plain server speak.
      if (message.length !== length) continue;
      const number = message.readUInt32LE();
      if (message.subarray(4).some((byte) => byte !== number % 256))
        this.#broken.push(`message ${number} is damaged`);
      this.#came.push(number);
      this.#progressed();
    }
  }

  async #within<T>(promise: Promise<T>, what: string): Promise<T | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => {
        this.#broken.push(`${what} does not settle`);
        resolve(undefined);
      }, forever);
    });
    const first = await Promise.race([promise, late]);
    clearTimeout(timer);
    return first;
  }
}
