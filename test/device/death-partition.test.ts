import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createHosts } from '#lib/guest/network.js';
import type { Told } from '../support/victim-of-partition.js';
import { startVictim } from '../support/victim-process.js';

const at = (sorted: readonly number[], part: number) => sorted[Math.floor(sorted.length * part)]!;

test('a timer of 5 ms stays on time while 20 connects hang in a partition', async () => {
  const network = await createHosts(2);
  onTestFinished(() => network.close());
  const [near, far] = [network.host(1), network.host(2)];
  const server = { role: 'server', host: far.address, options: {}, answers: true } as const;
  const { port } = await startVictim(server, far);
  const entry = fileURLToPath(new URL('../support/victim-of-partition.js', import.meta.url));
  const [file, ...args] = near.command([process.execPath, entry]);
  const child = spawn(file!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  onTestFinished(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  });
  const next = async () => (await once(child, 'message'))[0] as Told;
  const ready = next();
  child.send({ host: far.address, port });
  expect(await ready).toEqual({ type: 'ready' });
  await near.wire.partition();
  const done = next();
  child.send({});
  const told = await done;
  if (told.type !== 'done') throw new Error('told twice that it is ready');
  expect(told.codes).toEqual(Array(20).fill('ETIMEDOUT'));
  // They did hang, all of them.
  expect(told.hung).toBeGreaterThan(4900);
  const { quiet, hanging } = told;
  // A thread that sits in one rdma_connect() has no tick for the whole time. The bounds leave room for a host that gives
  // the guest no processor for a while, which the same process has measured before.
  const shown = JSON.stringify([quiet, hanging].map((all) => [at(all, 0.5), at(all, 0.99), all.at(-1)]));
  expect(at(hanging, 0.5), shown).toBeLessThan(5);
  expect(at(hanging, 0.99), shown).toBeLessThan(100 + at(quiet, 0.99));
  expect(hanging.at(-1), shown).toBeLessThan(1500 + quiet.at(-1)!);
});
