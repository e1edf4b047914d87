// Opens many connections from this process to itself, each with queues of its own, and exchanges a message on each.
import { useBinding } from '#lib/binding/addon.js';
import type { GuestDevice } from '../../support/devices.js';
import { connectPair, type Pair } from '../../support/verbs/endpoint.js';

const [name, address, count] = process.argv.slice(2);
const device: GuestDevice = { device: name!, address: address!, iwarp: true };
const options = { memory: 4096, completionQueue: { entries: 32 } };
const pairs: Pair[] = [];
while (pairs.length < Number(count)) {
  pairs.push(await connectPair(device, { active: options, passive: options }));
}
let exchanged = 0;
await Promise.all(
  pairs.map(async ({ active, passive }, i) => {
    const [there, back] = [passive.receive(64), active.receive(64, 64)];
    active.memory.bytes.fill(i, 128, 136);
    await active.send(8, 128);
    await there;
    await passive.send(8);
    await back;
    if (active.memory.bytes.subarray(64, 72).every((byte) => byte === i % 256)) exchanged++;
  }),
);
const open = pairs.filter(({ active }) => !active.queuePair.closed).length;
await Promise.all(pairs.map((pair) => pair.close()));
const left = Object.entries(useBinding().native.objectCounts()).filter(
  ([kind, value]) => kind !== 'Device' && value > 0,
);
console.log(JSON.stringify({ open, exchanged, left: Object.fromEntries(left) }));
