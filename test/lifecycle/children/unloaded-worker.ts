// Only a worker uses the addon. When it is gone node unloads what it has loaded; the threads of the pool live on.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const threads = () => readdirSync('/proc/self/task').length;

if (isMainThread) {
  const before = threads();
  const worker = new Worker(new URL(import.meta.url), { workerData: process.argv[2] });
  await once(worker, 'message');
  await worker.terminate();
  // They end by themselves when they have had nothing to do for some seconds.
  while (threads() > before) await delay(50);
  console.log('alive');
} else {
  const { Device, ProtectionDomain } = await import('node-rdma/verbs');
  const pd = new ProtectionDomain(Device.open(workerData as string));
  await pd.allocate(1 << 20);
  parentPort!.postMessage('used');
  setInterval(() => {}, 1000);
}
