import { type Connection, connect, type MemoryRegion, RemoteMemory } from '../../index.js';
import { histogram } from '../histogram.js';
import type { Output } from '../output.js';
import { LiveLine } from '../progress.js';
import { RoundTrips } from '../round-trips.js';
import { connectionOptions, encodeRequest, type Operation } from './request.js';

export interface PerfOptions {
  readonly host: string;
  readonly port: number;
  readonly operation: Operation;
  readonly measure: 'latency' | 'bandwidth';
  /** Bytes. */
  readonly size: number;
  readonly depth: number;
  /** Milliseconds that are measured. */
  readonly duration: number;
  readonly peerToPeer: boolean;
  readonly histogram: boolean;
}

/** What a measurement works with. */
interface Bench {
  readonly connection: Connection;
  readonly operation: Operation;
  readonly region: MemoryRegion;
  /** The server's memory; null where messages are measured. */
  readonly remote: RemoteMemory | null;
  readonly size: number;
}

const empty = new Uint8Array(0);

/** Measures between this host and one where `perf --listen` runs, and tells the result. */
export async function measure(options: PerfOptions, output: Output, interrupted: AbortSignal): Promise<void> {
  const { host, port, operation, size, peerToPeer } = options;
  const latency = options.measure === 'latency';
  const depth = latency ? 1 : options.depth;
  const request = { operation, echo: latency, size, depth };
  const connection = connect({
    ...{ host, port, peerToPeer, flowControl: true, ...connectionOptions(request) },
    privateData: encodeRequest(request),
    signal: interrupted,
  });
  await connection.established;
  const region = await connection.allocate(size, { access: operation === 'read' ? ['read-sink'] : [] });
  const remote = await askForMemory(connection, operation);
  const bench = { connection, operation, region, remote, size };
  output.person(
    `${latency ? 'latency' : 'bandwidth'} of ${operation} to ${host} (${connection.remoteAddress}), ${size} bytes`,
  );
  if (latency) {
    const times = await measureLatency(bench, options.duration);
    output.person(latencyText(times));
    if (options.histogram) output.person(histogram(times.sorted));
    output.machine({ type: 'latency', operation, size, rtt: times });
  } else {
    const result = await measureBandwidth(bench, depth, options.duration);
    output.person(bandwidthText(result));
    output.machine({ type: 'bandwidth', operation, size, depth, ...result });
  }
  await connection.close();
}

async function askForMemory(connection: Connection, operation: Operation): Promise<RemoteMemory | null> {
  await connection.send(empty);
  const answer = await receive(connection);
  return operation === 'send' ? null : RemoteMemory.fromBytes(answer);
}

async function receive(connection: Connection): Promise<Buffer> {
  const message = await connection.receive();
  if (message === null) throw new Error('the server has closed the connection');
  return message;
}

/** One message with its answer, or one Read. */
async function roundTrip({ connection, region, remote }: Bench): Promise<void> {
  if (remote === null) {
    await Promise.all([connection.send(region.bytes), receive(connection)]);
  } else {
    await connection.read(remote, region.bytes);
  }
}

/** Round trips that are not measured: code is compiled, and memory is touched, by the first ones. */
const warmUp = 100;

async function measureLatency(bench: Bench, duration: number): Promise<RoundTrips> {
  for (let i = 0; i < warmUp; i++) await roundTrip(bench);
  const times = new RoundTrips();
  const live = new LiveLine();
  const end = performance.now() + duration;
  for (let start = performance.now(); start < end; ) {
    await roundTrip(bench);
    const now = performance.now();
    times.add(now - start);
    live.show(() => `${times.count} round trips`);
    start = performance.now();
  }
  live.clear();
  return times;
}

function latencyText(times: RoundTrips): string {
  const microseconds = (time: number) => `${(time * 1000).toFixed(1)} µs`;
  const parts = [
    `minimum ${microseconds(times.minimum)}`,
    `average ${microseconds(times.average)}`,
    ...[50, 90, 99, 99.9].map((percent) => `${percent} % ${microseconds(times.percentile(percent))}`),
    `maximum ${microseconds(times.maximum)}`,
  ];
  return `${times.count} round trips: ${parts.join(', ')}`;
}

interface Throughput {
  readonly bytes: number;
  /** Milliseconds, until the server has all of it. */
  readonly time: number;
  readonly count: number;
}

function transfer({ connection, region, remote, operation }: Bench): Promise<unknown> {
  if (remote === null) return connection.send(region.bytes);
  return operation === 'write'
    ? connection.write(remote, region.bytes)
    : connection.read(remote, region.bytes);
}

async function measureBandwidth(bench: Bench, depth: number, duration: number): Promise<Throughput> {
  const live = new LiveLine();
  const start = performance.now();
  const end = start + duration;
  let count = 0;
  const lane = async () => {
    while (performance.now() < end) {
      await transfer(bench);
      count += 1;
      live.show(() => `${((count * bench.size) / 2 ** 20).toFixed(0)} MiB`);
    }
  };
  await Promise.all(Array.from({ length: depth }, lane));
  // What was sent is not there yet: the answer to this tells that it is.
  await bench.connection.send(empty);
  await receive(bench.connection);
  const time = performance.now() - start;
  live.clear();
  return { bytes: count * bench.size, count, time };
}

function bandwidthText({ bytes, count, time }: Throughput): string {
  const perSecond = (amount: number) => (amount / time) * 1000;
  return (
    `${count} in ${(time / 1000).toFixed(2)} s: ${(perSecond(bytes) / 2 ** 20).toFixed(1)} MiB/s, ` +
    `${((perSecond(bytes) * 8) / 1e9).toFixed(3)} Gbit/s, ${perSecond(count).toFixed(0)} a second`
  );
}
