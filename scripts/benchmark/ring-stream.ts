import { opcodes } from 'node-rdma/verbs';
import type { Program } from './program.js';
import { acceptRing, closeRing, connectRing, type RingEndpoint, type RingOptions } from './ring-endpoint.js';

export interface RingStreamOptions {
  readonly operation: 'send' | 'write' | 'read';
  /** Bytes. */
  readonly size: number;
  readonly iterations: number;
}

/** Requests on their way at once: the default of perftest. */
const sendDepth = 128;
/** Receives of the side that takes Sends. */
const receiveDepth = 512;
/** So many Sends are acknowledged by one: a receiver that runs out of receives would end an iWARP connection. */
const window = receiveDepth / 4;
/** Every so many requests one is signaled. */
const signalEvery = 32;

export function streamRingOptions(size: number): RingOptions {
  return { waiting: 'adaptive', sendDepth, receiveDepth, memory: Math.max(4096, size) };
}

/** Requests of one kind, as many on their way as the queue holds: requests per second. */
export const ringStream: Program<RingStreamOptions> = {
  async serve({ address, options, listening }) {
    const endpoint = await acceptRing(address, streamRingOptions(options.size), listening, (end) => {
      if (options.operation === 'send') takeSends(end, options.size);
    });
    const before = process.cpuUsage();
    await endpoint.disconnected;
    const cpu = process.cpuUsage(before);
    await closeRing(endpoint);
    return { value: 0, cpu: cpu.user + cpu.system };
  },

  async connect({ address, port, options }) {
    const endpoint = await connectRing(address, port, streamRingOptions(options.size), (end) => {
      if (options.operation === 'send') postCreditReceives(end);
    });
    const before = process.cpuUsage();
    const start = performance.now();
    await stream(endpoint, options);
    const seconds = (performance.now() - start) / 1000;
    const cpu = process.cpuUsage(before);
    await closeRing(endpoint);
    return { value: options.iterations / seconds, cpu: cpu.user + cpu.system };
  },
};

/** For the acknowledgements of Sends. */
export function postCreditReceives(endpoint: RingEndpoint): void {
  for (let slot = 0; slot < receiveDepth / window + 1; slot++) endpoint.postReceive(slot, 0, 0);
}

/** All receives are of the same bytes: what is measured is not what comes. */
export function takeSends(endpoint: RingEndpoint, size: number): void {
  for (let slot = 0; slot < receiveDepth; slot++) endpoint.postReceive(slot, 0, size);
  let taken = 0;
  endpoint.onCompletion = (completion) => {
    if (!completion.ok || completion.opcode !== opcodes.receive) return;
    endpoint.postReceive(completion.slot, 0, size);
    if (++taken % window === 0) endpoint.postSend(false, 0, 0, 0);
  };
}

export function stream(
  endpoint: RingEndpoint,
  { operation, size, iterations }: RingStreamOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const opcode = opcodes[operation];
    let posted = 0;
    let done = 0;
    let allowed = operation === 'send' ? receiveDepth : Number.POSITIVE_INFINITY;
    const depth = operation === 'read' ? endpoint.readDepth : sendDepth;
    const fill = () => {
      while (posted < iterations && posted - done < depth && posted < allowed) {
        posted++;
        // Reads are always reported by the device.
        const signaled = operation === 'read' || posted % signalEvery === 0 || posted === iterations;
        if (operation === 'send') endpoint.postSend(signaled, posted, 0, size);
        else endpoint.postRemote(opcode, signaled, posted, 0, size);
      }
    };
    endpoint.onCompletion = (completion) => {
      if (!completion.ok) {
        reject(completion.error());
        return;
      }
      if (completion.opcode === opcodes.receive) {
        allowed += window;
        endpoint.postReceive(completion.slot, 0, 0);
      } else if (operation === 'read') {
        done++;
      } else {
        // A completion also tells of the unsignaled requests before it.
        done = completion.slot;
      }
      if (done === iterations) resolve();
      else fill();
    };
    fill();
  });
}
