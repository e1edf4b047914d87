import { type Connection, connect, createServer } from 'node-rdma';
import { residentMemory } from './process-memory.js';
import type { Program } from './program.js';

export interface ManyOptions {
  readonly connections: number;
  /** Connections with traffic, and messages that each sends. */
  readonly active: number;
  readonly iterations: number;
}

/** Connections that are being made at once. */
const atOnce = 16;
/** Bytes; the queues are short, so that a thousand connections fit. */
const size = 64;
const options = { sendDepth: 4, receiveDepth: 4, maxMessageSize: size };

async function openMany(address: string, port: number, count: number): Promise<Connection[]> {
  const connections: Connection[] = [];
  while (connections.length < count) {
    const some = Array.from({ length: Math.min(atOnce, count - connections.length) }, () =>
      connect({ host: address, port, flowControl: true, ...options }),
    );
    await Promise.all(some.map(({ ready }) => ready));
    connections.push(...some);
  }
  return connections;
}

/** Some of many connections play ping-pong, all at once: microseconds for a message. */
export const manyConnections: Program<ManyOptions> = {
  async serve({ address, options: { connections }, listening }) {
    let left = connections;
    await new Promise<void>((resolve, reject) => {
      const server = createServer(options, async (connection) => {
        for await (const message of connection) await connection.send(message);
        await connection.close();
        if (--left === 0) server.close().then(resolve, reject);
      });
      server
        .listen({ host: address, port: 0, backlog: atOnce * 2 })
        .then(() => listening(server.address()!.port), reject);
    });
    return { value: 0 };
  },

  async connect({ address, port, options: { connections, active, iterations } }) {
    const all = await openMany(address, port, connections);
    // Spread over all of them, as they would be.
    const playing = all
      .filter((_, i) => i % Math.max(1, Math.floor(connections / active)) === 0)
      .slice(0, active);
    const message = Buffer.alloc(size);
    const play = async (connection: Connection, count: number) => {
      for (let i = 0; i < count; i++) {
        void connection.send(message);
        await connection.receive();
      }
    };
    await Promise.all(playing.map((connection) => play(connection, iterations / 10)));
    const start = performance.now();
    await Promise.all(playing.map((connection) => play(connection, iterations)));
    const microseconds = (performance.now() - start) * 1000;
    for (let i = 0; i < all.length; i += atOnce) {
      await Promise.all(all.slice(i, i + atOnce).map((connection) => connection.close()));
    }
    return { value: microseconds / (2 * active * iterations) };
  },
};

export interface IdleOptions {
  readonly connections: number;
}

/** What one more idle connection, with queues of the default size, adds to the resident memory: KiB. */
export const idleMemory: Program<IdleOptions> = {
  async serve({ address, options: { connections }, listening }) {
    let left = connections + 1;
    await new Promise<void>((resolve, reject) => {
      const server = createServer({}, async (connection) => {
        await connection.closed;
        if (--left === 0) server.close().then(resolve, reject);
      });
      server
        .listen({ host: address, port: 0, backlog: atOnce * 2 })
        .then(() => listening(server.address()!.port), reject);
    });
    return { value: 0 };
  },

  async connect({ address, port, options: { connections } }) {
    const open = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const connection = connect({ host: address, port, flowControl: true });
          await connection.ready;
          return connection;
        }),
      );
    // What is there once is there before.
    const all = await open(1);
    globalThis.gc?.();
    const before = residentMemory();
    while (all.length <= connections)
      all.push(...(await open(Math.min(atOnce, connections + 1 - all.length))));
    globalThis.gc?.();
    const after = residentMemory();
    await Promise.all(all.map((connection) => connection.close()));
    return { value: (after - before) / connections };
  },
};
