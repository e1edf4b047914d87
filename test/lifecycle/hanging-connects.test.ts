import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createHosts } from '#lib/guest/network.js';

const program = fileURLToPath(new URL('children/hanging-connects.js', import.meta.url));

// The kernel makes the TCP connection of siw inside rdma_connect(3), and tries for some fifteen seconds.
test('connects that hang in a partition hold up nothing: no timer, no close, no worker, no exit', {
  timeout: 180_000,
}, async () => {
  await using network = await createHosts(2);
  const [near, far] = [network.host(1), network.host(2)];
  const [command, ...args] = near.command([process.execPath, program, far.address]);
  const child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  const errors = text(child.stderr);
  const [resolved] = await once(child.stdout.setEncoding('utf8'), 'data');
  expect(resolved).toBe('resolved\n');
  const output = text(child.stdout);
  await near.wire.partition();
  child.stdin.write('cut\n');
  const [status] = await ended;
  await near.wire.heal();
  expect(status, await errors).toBe(0);
  const { median, longest, fates } = JSON.parse(await output) as {
    median: number;
    longest: number;
    fates: string[];
  };
  expect(fates).toEqual(['ERR_RDMA_CLOSED']);
  expect(median).toBeLessThan(10);
  // One connect that blocked the loop would take fifteen times as long; an emulated processor has its own delays.
  expect(longest).toBeLessThan(1000);
});
