import { expect, test } from 'vitest';
import { batchActions, shellLines } from '#lib/guest/action.js';
import { createHostActions, planHosts, planRxePair, shapeWire } from '#lib/guest/network-plan.js';

test('hosts share neither an address nor a device', () => {
  const hosts = planHosts(64);
  for (const key of ['name', 'address', 'address6', 'device', 'netdev'] as const)
    expect(new Set(hosts.map((host) => host[key])).size).toBe(64);
  expect(hosts[0]).toMatchObject({ name: 'h1', address: '10.79.0.1', address6: 'fd00:79::1' });
});

test("every host's network device has an index of its own", () => {
  const script = batchActions(createHostActions(planHosts(3)))
    .flatMap(shellLines)
    .join('\n');
  expect([...script.matchAll(/name wire-h\d index (\d+)/g)].map(([, index]) => index)).toEqual([
    '101',
    '102',
    '103',
  ]);
});

test('each end of an rxe pair is the far end of the other', () => {
  const [left, right] = planRxePair(2);
  expect(left.far.netdev).toBe(right.netdev);
  expect(right.far.netdev).toBe(left.netdev);
});

test('the shape of a wire names every property that it has', () => {
  const shape = { delay: 20, jitter: 2.5, loss: 1, slot: [4, 6], limit: 5000 } as const;
  expect(shellLines(shapeWire({ netdev: 'w', namespace: 'h1' }, shape, 17))).toEqual([
    'tc -n h1 qdisc replace dev w root handle 11: netem limit 5000 delay 20ms 2.5ms loss 1% slot 4ms 6ms',
  ]);
});

test('calls of ip that follow each other with the same options become one', () => {
  const actions = [
    { run: ['ip', 'link', 'set', 'lo', 'up'] },
    { run: ['ip', 'netns', 'add', 'h1'] },
    { run: ['ip', '-n', 'h1', 'link', 'set', 'lo', 'up'] },
    { write: '/proc/sys/a', text: '1' },
    { run: ['ip', 'netns', 'exec', 'h1', 'rdma', 'link'] },
  ] as const;
  expect(batchActions(actions).flatMap(shellLines)).toEqual([
    "ip -batch - <<'END'",
    'link set lo up\nnetns add h1',
    'END',
    "ip -n h1 -batch - <<'END'",
    'link set lo up',
    'END',
    'echo 1 >/proc/sys/a',
    'ip netns exec h1 rdma link',
  ]);
});
