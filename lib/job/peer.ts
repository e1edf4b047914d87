import type { WaitOptions } from '../connection/cancellation.js';
import { connect } from '../connection/connect.js';
import type { Connection } from '../connection/connection.js';
import type { ConnectionOptions } from '../connection/options.js';
import type { ConnectionRequest } from '../connection/request.js';
import { RdmaError } from '../errors.js';
import { RankError } from './errors.js';
import { decodeRefusal, encodeIntroduction, encodeRefusal } from './introduction.js';
import { abandonable } from './key-value-space.js';
import { judgeRequest } from './pair-rule.js';
import { byReach, type RankCard } from './rank-address.js';

/** What a {@link Peer} needs of the job. */
export interface PeerHost {
  readonly rank: number;
  readonly connectionOptions: ConnectionOptions;
  /** What a rank has published of itself. */
  card(rank: number, options: WaitOptions): Promise<RankCard>;
  connected(connection: Connection, rank: number): void;
  /** @returns whether somebody was told */
  lost(error: RankError): boolean;
}

/** How long to wait for the request of the other rank before asking it again: its own attempt may have failed. */
const patience = 2000;

class Arrival {
  readonly promise: Promise<Connection>;
  resolve!: (connection: Connection) => void;
  reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Whoever waits has a promise of its own.
    this.promise.catch(() => {});
  }
}

/** Another rank of the job: there is one connection to it at most, whoever asks for it. */
export class Peer {
  readonly rank: number;
  readonly #host: PeerHost;
  #generation = 0;
  #connection: Connection | undefined;
  #accepting: Connection | undefined;
  #asking: Connection | undefined;
  /** It was sent away for this rank's own attempt. */
  #sentAway = false;
  #arrival: Arrival | undefined;
  #attempting = false;

  constructor(host: PeerHost, rank: number) {
    this.#host = host;
    this.rank = rank;
  }

  /** The connection, if there is one over which sends flow. */
  get connection(): Connection | undefined {
    return this.#connection;
  }

  /** Resolves with the connection, as soon as there is one. */
  async connect(options: { timeout: number; signal?: AbortSignal | undefined }): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    const arrival = this.expect(options);
    if (!this.#attempting) {
      this.#attempting = true;
      this.#attempt(options.timeout)
        .catch((error: Error) => this.#fail(error))
        .finally(() => {
          this.#attempting = false;
        });
    }
    return await arrival;
  }

  /** As {@link connect}, but leaves it to the other rank to ask. */
  async expect(options: { timeout: number; signal?: AbortSignal | undefined }): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    this.#arrival ??= new Arrival();
    try {
      return await abandonable(this.#arrival.promise, options, 'connecting');
    } catch (error) {
      if (error instanceof RdmaError) throw RankError.from(this.rank, error);
      throw error;
    }
  }

  /** Answers its request; `generation` is that of the request. */
  answer(request: ConnectionRequest, generation: number): void {
    const present = this.#connection ?? this.#accepting;
    const verdict = judgeRequest(
      {
        self: this.#host.rank,
        peer: this.rank,
        generation: this.#generation,
        asking: this.#asking !== undefined,
        connected: present !== undefined,
      },
      generation,
    );
    if (verdict === 'superseded' || verdict === 'stale') {
      this.#sentAway = true;
      request.reject(encodeRefusal({ reason: verdict, generation: this.#generation }));
      return;
    }
    if (verdict === 'replace') {
      present!.destroy(new RankError(this.rank, 'ECONNRESET', 'has lost the connection, and connects anew'));
    }
    this.#generation = generation;
    const connection = request.accept(this.#host.connectionOptions);
    this.#accepting = connection;
    this.#name(connection);
    connection.ready.then(
      () => {
        if (this.#accepting === connection) this.#adopt(connection);
      },
      // The other rank knows it too, and asks again if it wants to.
      () => {
        if (this.#accepting === connection) this.#accepting = undefined;
      },
    );
  }

  /** Closes the connection in order. */
  async close(): Promise<void> {
    await Promise.all([this.#connection?.close(), this.#accepting?.close()]);
    this.#asking?.destroy();
  }

  async #attempt(timeout: number): Promise<void> {
    const deadline = performance.now() + timeout;
    const card = await this.#host.card(this.rank, { timeout });
    while (this.#connection === undefined) {
      const error = this.#accepting === undefined ? await this.#ask(card, deadline) : undefined;
      if (this.#connection !== undefined) return;
      const left = deadline - performance.now();
      // What was sent away, or is sending this rank away, comes by itself. And siw gives a listener ten seconds, which
      // a rank that has just been started may need for other things.
      const slow = error?.code === 'ETIMEDOUT';
      const coming =
        error === undefined || slow || this.#sentAway || decodeRefusal(error.privateData) !== null;
      if (!coming || left <= 0)
        throw error ?? new RdmaError('ETIMEDOUT', `not connected within ${timeout} ms`);
      this.#arrival ??= new Arrival();
      const wait = { timeout: Math.ceil(Math.min(left, patience)) };
      await abandonable(this.#arrival.promise, wait, 'waiting').catch(() => {});
    }
  }

  /** Asks at one address after the other; the last error, if none is good. */
  async #ask(card: RankCard, deadline: number): Promise<RdmaError | undefined> {
    let failure: RdmaError | undefined;
    const addresses = byReach(card.addresses);
    for (const [tried, { address, port }] of addresses.entries()) {
      if (this.#accepting !== undefined) return undefined;
      const left = (deadline - performance.now()) / (addresses.length - tried);
      if (left < 1) break;
      const token = Buffer.from(card.token, 'hex');
      const connection = connect({
        ...this.#host.connectionOptions,
        host: address,
        port,
        peerToPeer: { negotiate: 'require', timeout: Math.ceil(left) },
        privateData: encodeIntroduction({ token, rank: this.#host.rank, generation: this.#generation }),
        timeout: Math.ceil(left),
      });
      this.#asking = connection;
      this.#name(connection);
      try {
        await connection.ready;
        this.#adopt(connection);
        return undefined;
      } catch (error) {
        if (!(error instanceof RdmaError)) throw error;
        failure = error;
        const refusal = decodeRefusal(error.privateData);
        if (refusal !== null) {
          this.#generation = Math.max(this.#generation, refusal.generation);
          break;
        }
      } finally {
        if (this.#asking === connection) this.#asking = undefined;
      }
    }
    return failure ?? new RdmaError('EHOSTUNREACH', 'has published no address');
  }

  #adopt(connection: Connection): void {
    this.#connection = connection;
    this.#accepting = undefined;
    this.#sentAway = false;
    this.#arrival?.resolve(connection);
    this.#arrival = undefined;
    this.#host.connected(connection, this.rank);
  }

  #fail(error: Error): void {
    this.#arrival?.reject(RankError.from(this.rank, error));
    this.#arrival = undefined;
  }

  /** Errors of the connection name the rank, and its end is seen here. */
  #name(connection: Connection): void {
    const { link } = connection;
    link.explain = (error) => (error instanceof RdmaError ? RankError.from(this.rank, error) : error);
    const { onClosed } = link;
    link.onClosed = (error, established) => {
      onClosed(error, established);
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#generation += 1;
      if (!(error instanceof RankError) || connection.listenerCount('error') > 0) return;
      if (this.#host.lost(error)) link.lifecycle.errorCarried();
    };
  }
}
