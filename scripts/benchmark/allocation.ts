import type { Connection } from 'node-rdma';
import { openOne, serveOne } from './facade-endpoint.js';
import { echo } from './facade-latency.js';
import type { Program } from './program.js';
import { acceptRing, closeRing, connectRing } from './ring-endpoint.js';
import { answerSends, postReceives, ringOptions } from './ring-latency.js';

export interface AllocationOptions {
  /** Bytes. */
  readonly size: number;
  readonly iterations: number;
}

/** Messages before the first that is measured: code that has not been compiled yet allocates. */
const warmUp = 20_000;

/**
 * What `heapUsed` grows by, in bytes, while nothing is collected: for a process with `--expose-gc` and a young
 * generation that holds it all.
 */
class HeapGrowth {
  readonly #start: number;
  #collections = 0;
  readonly #observer = new PerformanceObserver((list) => {
    this.#collections += list.getEntries().length;
  });

  constructor() {
    globalThis.gc!();
    this.#observer.observe({ entryTypes: ['gc'] });
    this.#start = process.memoryUsage().heapUsed;
  }

  /** Throws if something was collected meanwhile. */
  async end(): Promise<number> {
    const grown = process.memoryUsage().heapUsed - this.#start;
    await new Promise((resolve) => setImmediate(resolve));
    this.#observer.disconnect();
    if (this.#collections > 0) throw new Error('the heap was collected while it was measured');
    return grown;
  }
}

/** Ping-pong on the rings: bytes of heap that the client allocates for a message, sent and received. */
export const ringAllocation: Program<AllocationOptions> = {
  async serve({ address, options, listening }) {
    const endpoint = await acceptRing(address, ringOptions('adaptive', options.size), listening, (end) =>
      answerSends(end, options.size),
    );
    await endpoint.disconnected;
    await closeRing(endpoint);
    return { value: 0 };
  },

  async connect({ address, port, options: { size, iterations } }) {
    const prepared = ringOptions('adaptive', size);
    const endpoint = await connectRing(address, port, prepared, (end) => postReceives(end, size));
    const exchange = (count: number) =>
      new Promise<void>((resolve, reject) => {
        let left = count;
        endpoint.onCompletion = (completion) => {
          if (!completion.ok) return reject(completion.error());
          endpoint.postReceive(completion.slot, (completion.slot + 1) * size, size);
          if (--left === 0) return resolve();
          endpoint.postSend(false, 0, 0, size);
        };
        endpoint.postSend(false, 0, 0, size);
      });
    await exchange(warmUp);
    const growth = new HeapGrowth();
    await exchange(iterations);
    const grown = await growth.end();
    await closeRing(endpoint);
    return { value: grown / (2 * iterations) };
  },
};

/** How a program sends and receives: with `send()` and `receive()`, or `trySend()` and the event. */
export type FacadeManner = 'promises' | 'events';

type Exchange = (connection: Connection, message: Buffer, count: number) => Promise<void>;

const exchanges: Record<FacadeManner, Exchange> = {
  async promises(connection, message, count) {
    for (let i = 0; i < count; i++) {
      void connection.send(message);
      await connection.receive();
    }
  },

  events(connection, message, count) {
    return new Promise((resolve) => {
      let left = count;
      const onMessage = () => {
        if (--left > 0) {
          connection.trySend(message);
          return;
        }
        connection.off('message', onMessage);
        resolve();
      };
      connection.on('message', onMessage);
      connection.trySend(message);
    });
  },
};

/** Ping-pong of the facade: as {@link ringAllocation}. */
export const facadeAllocation: Program<AllocationOptions & { readonly manner: FacadeManner }> = {
  async serve({ address, listening }) {
    await serveOne(address, {}, listening, echo);
    return { value: 0 };
  },

  async connect({ address, port, options: { size, iterations, manner } }) {
    const connection = await openOne(address, port, {});
    const message = Buffer.alloc(size);
    const exchange = exchanges[manner];
    await exchange(connection, message, warmUp / 10);
    const growth = new HeapGrowth();
    await exchange(connection, message, iterations);
    const grown = await growth.end();
    await connection.close();
    return { value: grown / (2 * iterations) };
  },
};
