// Terminates a worker in each state of a connection, and tells which native objects outlive it.
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { CmId, EventChannel } from 'node-rdma/cm';
import { useBinding } from '#lib/binding/addon.js';
import type { GuestDevice } from '../../support/devices.js';
import { connectPair, Endpoint, Listener, resolve } from '../../support/verbs/endpoint.js';

const states: Record<string, (device: GuestDevice) => Promise<void>> = {
  async idle() {
    new EventChannel();
  },
  async listening(device) {
    new Listener(device);
  },
  async resolving(device) {
    void new CmId(new EventChannel()).resolveAddress({ address: device.address, port: 1 }).catch(() => {});
  },
  async requested(device) {
    const listener = new Listener(device);
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    void active.id.connect().catch(() => {});
    await requested;
  },
  async connected(device) {
    await connectPair(device);
  },
  async registering(device) {
    const { active } = await connectPair(device);
    void active.pd.register(new Uint8Array(64 << 20)).catch(() => {});
    void active.pd.allocate(64 << 20).catch(() => {});
  },
  async 'under traffic'(device) {
    const { active, passive } = await connectPair(device);
    const bounce = async (from: Endpoint, to: Endpoint): Promise<void> => {
      const received = to.receive(64);
      await from.send(8);
      await received;
      return bounce(to, from);
    };
    void bounce(active, passive).catch(() => {});
  },
  async polling(device) {
    await connectPair(device, { active: { completionQueue: { waiting: 'poll' } } });
  },
  async closing(device) {
    const { active, passive } = await connectPair(device);
    void active.close();
    void passive.cq.close();
  },
};

const [name, address] = process.argv.slice(2);
const device: GuestDevice = { device: name!, address: address!, iwarp: true };

if (isMainThread) {
  const { native } = useBinding();
  const left: Record<string, Record<string, number>> = {};
  for (const state of Object.keys(states)) {
    const worker = new Worker(new URL(import.meta.url), { workerData: state, argv: process.argv.slice(2) });
    await once(worker, 'message');
    await worker.terminate();
    // What a call in the kernel still holds goes when that call returns.
    for (let i = 0; i < 100_000; i++) {
      left[state] = Object.fromEntries(
        Object.entries(native.objectCounts()).filter(([, count]) => count > 0),
      );
      if (Object.keys(left[state]).length === 0) break;
      await nextTurn();
    }
  }
  console.log(JSON.stringify(left));
} else {
  await states[workerData as string]!(device);
  parentPort!.postMessage('ready');
  await new Promise(() => setInterval(() => {}, 1000));
}
