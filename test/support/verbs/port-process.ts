import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Device } from 'node-rdma/verbs';
import type { GuestDevice } from '../devices.js';

// Takes the network device under an RDMA device down and up, and tells what this process and two workers hear. A process of
// its own: librdmacm keeps a device open to the end of the process, and till then the device can't be removed.
const [json, wire] = process.argv.slice(2);
const guest = JSON.parse(json!) as GuestDevice;
const set = (state: 'up' | 'down') => execFileSync('ip', ['link', 'set', wire!, state]);

const file = new URL('event-worker.js', import.meta.url);
const workers = [new Worker(file, { workerData: guest }), new Worker(file, { workerData: guest })];
for (const worker of workers) await once(worker, 'message');
const device = Device.open(guest.device);
const states = [device.queryPort().state];
const told: unknown[] = [];
for (const [event, state] of [
  ['port-err', 'down'],
  ['port-active', 'up'],
] as const) {
  const heard = [...workers.map((worker) => once(worker, 'message')), once(device.events, event)];
  set(state);
  told.push((await Promise.all(heard)).flat());
  states.push(device.queryPort().state);
}
for (const worker of workers) {
  worker.postMessage('end');
  await once(worker, 'exit');
}
await device.close();
console.log(JSON.stringify({ told, states }));
