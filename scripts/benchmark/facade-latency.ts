import type { Connection } from 'node-rdma';
import { openOne, serveOne } from './facade-endpoint.js';
import type { Program } from './program.js';
import { latencySample } from './sample.js';

export interface FacadeLatencyOptions {
  /** Bytes. */
  readonly size: number;
  readonly iterations: number;
}

/** Round trips before the first that is measured. */
const warmUp = 500;

/** Answers each message with a message. */
export async function echo(connection: Connection): Promise<void> {
  for await (const message of connection) await connection.send(message);
}

/** Ping-pong of `send()` and `receive()`: half of the round trip in microseconds. */
export const facadeLatency: Program<FacadeLatencyOptions> = {
  async serve({ address, listening }) {
    await serveOne(address, {}, listening, echo);
    return { value: 0 };
  },

  async connect({ address, port, options: { size, iterations } }) {
    const connection = await openOne(address, port, {});
    const message = Buffer.alloc(size);
    const values = new Float64Array(iterations);
    for (let i = -warmUp; i < iterations; i++) {
      const start = performance.now();
      void connection.send(message);
      await connection.receive();
      if (i >= 0) values[i] = (performance.now() - start) * 500;
    }
    await connection.close();
    return latencySample(values);
  },
};
