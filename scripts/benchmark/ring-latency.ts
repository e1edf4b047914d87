import { opcodes, type Waiting } from 'node-rdma/verbs';
import type { Program } from './program.js';
import { acceptRing, closeRing, connectRing, type RingEndpoint, type RingOptions } from './ring-endpoint.js';
import { latencySample } from './sample.js';

export interface RingLatencyOptions {
  readonly waiting: Waiting;
  /** Bytes. */
  readonly size: number;
  readonly iterations: number;
}

/** Receives that are posted on either side; one is in use at a time. */
const receives = 8;
/** Round trips before the first that is measured. */
const warmUp = 200;

export function ringOptions(waiting: Waiting, size: number): RingOptions {
  return { waiting, sendDepth: 128, receiveDepth: 128, memory: Math.max(4096, (receives + 1) * size) };
}

export function postReceives(endpoint: RingEndpoint, size: number): void {
  for (let slot = 0; slot < receives; slot++) endpoint.postReceive(slot, (slot + 1) * size, size);
}

/** Answers each Send with a Send. */
export function answerSends(endpoint: RingEndpoint, size: number): void {
  postReceives(endpoint, size);
  endpoint.onCompletion = (completion) => {
    if (!completion.ok) return;
    endpoint.postReceive(completion.slot, (completion.slot + 1) * size, size);
    endpoint.postSend(false, 0, 0, size);
  };
}

/** Ping-pong with Sends: half of the round trip in microseconds. */
export const sendLatency: Program<RingLatencyOptions> = {
  async serve({ address, options, listening }) {
    const prepared = ringOptions(options.waiting, options.size);
    const endpoint = await acceptRing(address, prepared, listening, (end) => answerSends(end, options.size));
    await endpoint.disconnected;
    await closeRing(endpoint);
    return { value: 0 };
  },

  async connect({ address, port, options }) {
    const { size, iterations } = options;
    const total = warmUp + iterations;
    const stamps = new Float64Array(total + 1);
    const endpoint = await connectRing(address, port, ringOptions(options.waiting, options.size), (end) =>
      postReceives(end, size),
    );
    await new Promise<void>((resolve, reject) => {
      let trips = 0;
      endpoint.onCompletion = (completion) => {
        if (!completion.ok) {
          reject(completion.error());
          return;
        }
        stamps[++trips] = performance.now();
        if (trips === total) {
          resolve();
          return;
        }
        endpoint.postReceive(completion.slot, (completion.slot + 1) * size, size);
        endpoint.postSend(false, 0, 0, size);
      };
      stamps[0] = performance.now();
      endpoint.postSend(false, 0, 0, size);
    });
    await closeRing(endpoint);
    return latencySample(halves(stamps));
  },
};

/** Half of the time between stamps, in microseconds, after the warm-up. */
function halves(stamps: Float64Array): Float64Array {
  const result = new Float64Array(stamps.length - 1 - warmUp);
  for (let i = 0; i < result.length; i++) {
    result[i] = (stamps[warmUp + i + 1]! - stamps[warmUp + i]!) * 500;
  }
  return result;
}

/** RDMA Reads, one after another: the round trip in microseconds. */
export const readLatency: Program<RingLatencyOptions> = {
  async serve({ address, options, listening }) {
    const endpoint = await acceptRing(address, ringOptions(options.waiting, options.size), listening);
    await endpoint.disconnected;
    await closeRing(endpoint);
    return { value: 0 };
  },

  async connect({ address, port, options }) {
    const { size, iterations } = options;
    const total = warmUp + iterations;
    const stamps = new Float64Array(total + 1);
    const endpoint = await connectRing(address, port, ringOptions(options.waiting, options.size));
    await new Promise<void>((resolve, reject) => {
      let reads = 0;
      endpoint.onCompletion = (completion) => {
        if (!completion.ok) {
          reject(completion.error());
          return;
        }
        stamps[++reads] = performance.now();
        if (reads === total) resolve();
        else endpoint.postRemote(opcodes.read, true, 0, 0, size);
      };
      stamps[0] = performance.now();
      endpoint.postRemote(opcodes.read, true, 0, 0, size);
    });
    await closeRing(endpoint);
    // ib_read_lat gives the whole round trip, too.
    return latencySample(halves(stamps).map((half) => half * 2));
  },
};

/**
 * Ping-pong with Writes, for whose arrival the last byte of the memory is watched, as ib_write_lat does: half of the
 * round trip in microseconds. Nothing else runs in either process meanwhile.
 */
export const writeLatency: Program<RingLatencyOptions> = {
  async serve({ address, options, listening }) {
    const endpoint = await acceptRing(address, ringOptions(options.waiting, options.size), listening);
    pingPongInMemory(endpoint, options, false);
    await endpoint.disconnected;
    await closeRing(endpoint);
    return { value: 0 };
  },

  async connect({ address, port, options }) {
    const endpoint = await connectRing(address, port, ringOptions(options.waiting, options.size));
    const stamps = pingPongInMemory(endpoint, options, true);
    await closeRing(endpoint);
    return latencySample(halves(stamps));
  },
};

function pingPongInMemory(endpoint: RingEndpoint, options: RingLatencyOptions, first: boolean): Float64Array {
  const { size, iterations } = options;
  const total = warmUp + iterations;
  const stamps = new Float64Array(total + 1);
  const { bytes, cq } = endpoint;
  const arriving = size - 1;
  const leaving = 2 * size - 1;
  stamps[0] = performance.now();
  for (let i = 1; i <= total; i++) {
    const mark = 1 + (i % 255);
    if (first) writeMark(endpoint, size, leaving, mark);
    while (bytes[arriving] !== mark);
    if (!first) writeMark(endpoint, size, leaving, mark);
    // Unsignaled requests leave the queue with the signaled ones between them, which have to be taken.
    if (i % 32 === 0) cq.poll();
    stamps[i] = performance.now();
  }
  return stamps;
}

function writeMark(endpoint: RingEndpoint, size: number, at: number, mark: number): void {
  endpoint.bytes[at] = mark;
  endpoint.postRemote(opcodes.write, false, 0, size, size);
  endpoint.flush();
}
