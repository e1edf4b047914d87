import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { rings } from 'node-rdma/verbs';
import type { GuestDevice } from '../devices.js';
import { SharedReceiver } from './shared-receive.js';

// Tells which events this environment has heard, and has its own queue reach its limit when it is told to.
const heard: string[] = [];
const receiver = new SharedReceiver(workerData as GuestDevice);
for (const name of ['port-err', 'port-active'] as const) {
  receiver.device.events.on(name, (event) => {
    heard.push(event.name);
    parentPort!.postMessage(event.name);
  });
}
receiver.srq.events.on('srq-limit-reached', (event) => heard.push(event.name));
const { client } = await receiver.connect();

async function reachLimit(): Promise<void> {
  const received = Array.from({ length: 4 }, (_, i) => receiver.receive(i * 64));
  rings().requests.flush();
  const reached = once(receiver.srq.events, 'srq-limit-reached');
  receiver.srq.arm(3);
  for (const each of received) {
    await client.send(1);
    await each;
  }
  await reached;
}

parentPort!.on('message', async (message: 'reach-limit' | 'end') => {
  if (message === 'reach-limit') {
    await reachLimit();
    parentPort!.postMessage('reached');
    return;
  }
  await receiver.close();
  parentPort!.postMessage(heard);
  parentPort!.close();
});
parentPort!.postMessage('ready');
