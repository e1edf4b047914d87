import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { devices, type GuestDevice } from '../support/devices.js';
import { connectPair } from '../support/verbs/endpoint.js';
import { SharedReceiver } from '../support/verbs/shared-receive.js';

const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' });
const rdma = (...args: string[]) => execFileSync('rdma', args, { encoding: 'utf8' });

/** A device of its own on a wire of its own, so that nothing else loses its port. */
async function withDevice(
  driver: 'siw' | 'rxe',
  use: (guest: GuestDevice, wire: string) => Promise<void>,
): Promise<void> {
  const [wire, end, device] = [`${driver}ev`, `${driver}evend`, `${driver}ev`];
  const address = driver === 'siw' ? '10.91.0.1' : '10.92.0.1';
  ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', end);
  ip('address', 'add', `${address}/24`, 'dev', wire);
  for (const link of [end, wire]) ip('link', 'set', link, 'up');
  rdma('link', 'add', device, 'type', driver, 'netdev', wire);
  try {
    await use({ device, address, iwarp: driver === 'siw' }, wire);
  } finally {
    rdma('link', 'delete', device);
    ip('link', 'delete', wire);
  }
}

test.each(['siw', 'rxe'] as const)(
  'a device of %s tells every environment that its port goes down and comes up',
  async (driver) => {
    await withDevice(driver, async (guest, wire) => {
      const child = await runChild('test/support/verbs/port-process.js', [JSON.stringify(guest), wire]);
      expect(child.stderr).toBe('');
      const event = (name: string) => [name, name, { name, port: 1 }];
      expect(JSON.parse(child.stdout)).toEqual({
        told: [event('port-err'), event('port-active')],
        states: ['active', 'down', 'active'],
      });
      expect(child.status).toBe(0);
    });
  },
);

describe.each(devices)('on %s', (_, guest) => {
  test('a completion queue that overruns says so', async () => {
    const pair = await connectPair(guest, {
      passive: { completionQueue: { entries: 1, waiting: 'manual' } },
    });
    const { active, passive } = pair;
    const { entries } = passive.cq;
    const overrun = once(passive.cq.events, 'cq-err');
    const receives = Array.from({ length: 100 }, () =>
      passive.queuePair.submit({ opcode: 'receive', sges: [{ region: passive.memory, length: 8 }] }),
    );
    const settled = Promise.allSettled(receives);
    expect(entries).toBeLessThan(100);
    for (let i = 0; i < 100; i++) await active.send(1).catch(() => {});
    expect(await overrun).toEqual([{ name: 'cq-err', port: 0 }]);
    await pair.close();
    await settled;
  });

  test('two workers on one device hear of their own objects each, and both of nothing else', async () => {
    const file = new URL('../support/verbs/event-worker.js', import.meta.url);
    const workers = [
      new Worker(file, { workerData: guest }),
      new Worker(file, { workerData: guest }),
    ] as const;
    for (const worker of workers) expect(await once(worker, 'message')).toEqual(['ready']);
    for (const worker of [workers[1], workers[0], workers[1]]) {
      worker.postMessage('reach-limit');
      expect(await once(worker, 'message')).toEqual(['reached']);
    }
    const heard = [];
    for (const worker of workers) {
      worker.postMessage('end');
      heard.push((await once(worker, 'message'))[0]);
      await once(worker, 'exit');
    }
    expect(heard).toEqual([['srq-limit-reached'], ['srq-limit-reached', 'srq-limit-reached']]);
  });

  test('a queue pair in error tells when it has taken its last receive', async () => {
    const receiver = new SharedReceiver(guest);
    const { queuePair } = await receiver.connect();
    const last = once(queuePair.events, 'qp-last-wqe-reached');
    queuePair.modify({ state: 'ERR' });
    expect(await last).toEqual([{ name: 'qp-last-wqe-reached', port: 0 }]);
    await receiver.close();
  });
});
