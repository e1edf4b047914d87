// Two workers and the main thread each connect to themselves over one device, at once, and exchange messages.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { useBinding } from '#lib/binding/addon.js';
import type { GuestDevice } from '../../support/devices.js';
import { connectPair } from '../../support/verbs/endpoint.js';

const [name, address] = process.argv.slice(2);
const device: GuestDevice = { device: name!, address: address!, iwarp: true };

async function exchange(): Promise<number> {
  const pair = await connectPair(device);
  let exchanged = 0;
  for (let i = 0; i < 200; i++) {
    pair.active.memory.bytes.fill(i, 0, 8);
    const received = pair.passive.receive(64);
    await pair.active.send(8);
    await received;
    if (pair.passive.memory.bytes.subarray(0, 8).every((byte) => byte === i)) exchanged++;
  }
  await pair.close();
  return exchanged;
}

if (isMainThread) {
  const workers = [1, 2].map(() => new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) }));
  const ends = workers.map((worker) => once(worker, 'exit'));
  const counts = workers.map((worker) => once(worker, 'message').then(([count]) => count as number));
  const exchanged = await Promise.all([exchange(), ...counts]);
  await Promise.all(ends);
  // A cm_id's view of its device is left to the garbage collector.
  const left = Object.entries(useBinding().native.objectCounts()).filter(
    ([kind, count]) => kind !== 'Device' && count > 0,
  );
  console.log(JSON.stringify({ exchanged, left: Object.fromEntries(left) }));
} else {
  parentPort!.postMessage(await exchange());
}
