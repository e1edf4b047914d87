// Connects twenty times into a partition, and once from a worker. Says `resolved` when the wire may be cut, waits for a
// line that it has been, and tells how the timers fared and what became of the connects when their ids were closed.
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { EventChannel } from 'node-rdma/cm';
import { Endpoint, resolve } from '../../support/verbs/endpoint.js';

const destination = { address: process.argv[2]!, port: 7471 };
const channel = new EventChannel();
const prepare = async () => new Endpoint(await resolve(channel, destination), { memory: 4096 });

async function measureTimer(): Promise<number[]> {
  const gaps: number[] = [];
  let last = performance.now();
  await new Promise<void>((done) => {
    const timer = setInterval(() => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      if (gaps.length < 400) return;
      clearInterval(timer);
      done();
    }, 5);
  });
  return gaps.sort((a, b) => a - b);
}

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  await once(worker, 'message');
  const ends = await Promise.all(Array.from({ length: 20 }, prepare));
  console.log('resolved');
  await once(process.stdin, 'data');
  const fates = ends.map(({ id }) =>
    id.connect().then(
      () => 'connected',
      (error: { code: string }) => error.code,
    ),
  );
  worker.postMessage('connect');
  await once(worker, 'message');
  const gaps = await measureTimer();
  await worker.terminate();
  for (const { id } of ends) void id.close();
  const settled = await Promise.all(fates);
  await nextTurn();
  console.log(JSON.stringify({ median: gaps[200], longest: gaps.at(-1), fates: [...new Set(settled)] }));
  process.exit(0);
} else {
  const end = await prepare();
  parentPort!.postMessage('resolved');
  await once(parentPort!, 'message');
  void end.id.connect().catch(() => {});
  parentPort!.postMessage('connecting');
  await new Promise(() => setInterval(() => {}, 1000));
}
