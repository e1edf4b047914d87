// Makes one object of each kind, forgets them all, and collects garbage until the native objects are gone.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CompletionQueue, Device, ProtectionDomain, QueuePair } from 'node-rdma/verbs';
import { useBinding } from '#lib/binding/addon.js';

const warnings: string[] = [];
process.removeAllListeners('warning');
process.on('warning', ({ message }) => {
  warnings.push(message);
});

function abandon(): void {
  const device = Device.open(process.argv[2]!);
  const pd = new ProtectionDomain(device);
  const cq = new CompletionQueue(device, { entries: 16 });
  pd.allocateSync(4096);
  new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq });
}

const { native } = useBinding();
const left = () => Object.keys(native.objectCounts()).filter((kind) => native.objectCounts()[kind]! > 0);
abandon();
while (left().length > 0) {
  globalThis.gc?.();
  await nextTurn();
}
console.log(JSON.stringify({ warnings: warnings.sort(), left: left() }));
