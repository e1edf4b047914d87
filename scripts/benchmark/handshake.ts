import { connect, createServer } from 'node-rdma';
import type { Program } from './program.js';
import { latencySample } from './sample.js';

export interface HandshakeOptions {
  readonly peerToPeer: boolean;
  readonly connections: number;
}

/** From `connect()` to `ready`, when sends flow: microseconds. */
export const handshake: Program<HandshakeOptions> = {
  async serve({ address, options: { connections }, listening }) {
    await new Promise<void>((resolve, reject) => {
      let left = connections;
      const server = createServer(async (connection) => {
        await connection.closed;
        if (--left === 0) server.close().then(resolve, reject);
      });
      server.listen({ host: address, port: 0 }).then(() => listening(server.address()!.port), reject);
    });
    return { value: 0 };
  },

  async connect({ address, port, options: { peerToPeer, connections } }) {
    const values = new Float64Array(connections);
    for (let i = 0; i < connections; i++) {
      const start = performance.now();
      const connection = connect({ host: address, port, peerToPeer });
      await connection.ready;
      values[i] = (performance.now() - start) * 1000;
      await connection.close();
    }
    return latencySample(values);
  },
};
