import { type Connection, RemoteMemory } from 'node-rdma';
import { openOne, serveOne } from './facade-endpoint.js';
import type { Program } from './program.js';
import type { RingStreamOptions } from './ring-stream.js';

/** Receives of the side that takes Sends, and Sends on their way. */
const depth = 32;
const window = 64;

/** Requests of one kind of a connection, with borrowed memory: requests per second. */
export const facadeStream: Program<RingStreamOptions> = {
  async serve({ address, options: { operation, size, iterations }, listening }) {
    await serveOne(address, limits(size), listening, async (connection) => {
      const region = await connection.allocate(size, { access: ['remote-write', 'remote-read'] });
      await connection.send(region.remote().toBytes());
      if (operation === 'send') await take(connection, iterations);
      // The client ends it.
      await connection.receive();
    });
    return { value: 0 };
  },

  async connect({ address, port, options }) {
    const { operation, size, iterations } = options;
    const connection = await openOne(address, port, limits(size));
    const remote = RemoteMemory.fromBytes((await connection.receive())!);
    const region = await connection.allocate(size, { access: ['read-sink'] });
    const request = {
      send: () => connection.send(region.bytes),
      write: () => connection.write(remote, region.bytes),
      read: () => connection.read(remote, region.bytes),
    }[operation];
    const start = performance.now();
    await repeat(request, iterations);
    const seconds = (performance.now() - start) / 1000;
    if (operation === 'send') await connection.receive();
    await connection.close();
    return { value: iterations / seconds };
  },
};

function limits(size: number) {
  return {
    maxMessageSize: Math.max(8192, size),
    receiveDepth: depth,
    sendDepth: 128,
    highWaterMark: 2 ** 31,
  };
}

/** Takes so many messages where they lie, and says so. */
async function take(connection: Connection, count: number): Promise<void> {
  let taken = 0;
  for await (const lease of connection.leases()) {
    lease.release();
    if (++taken === count) break;
  }
  await connection.send(new Uint8Array(1));
}

/** Keeps a window of requests on their way. */
async function repeat(request: () => Promise<unknown>, count: number): Promise<void> {
  let left = count;
  const work = async () => {
    while (left > 0) {
      left--;
      await request();
    }
  };
  await Promise.all(Array.from({ length: window }, work));
}
