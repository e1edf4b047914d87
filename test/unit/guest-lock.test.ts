import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLock } from '#lib/guest/lock.js';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'guest-lock-'));
  file = join(folder, 'lock');
});

afterEach(() => rm(folder, { recursive: true }));

const noWait = () => {
  throw new Error('waited for a lock that nobody holds');
};

test('the result of the work is passed on', async () => {
  expect(await withLock(file, noWait, async () => 42)).toBe(42);
});

test('the second one waits until the first has ended, and says so', async () => {
  const order: string[] = [];
  const firstMayEnd = deferred();
  const first = deferred();
  const waiting = deferred();
  const one = withLock(file, noWait, async () => {
    first.resolve();
    await firstMayEnd.promise;
    order.push('first');
  });
  await first.promise;
  const two = withLock(file, waiting.resolve, async () => order.push('second'));
  await waiting.promise;
  firstMayEnd.resolve();
  await Promise.all([one, two]);
  expect(order).toEqual(['first', 'second']);
});

test('work that fails gives the lock back', async () => {
  const failing = withLock(file, noWait, () => Promise.reject(new Error('no space')));
  await expect(failing).rejects.toThrow('no space');
  expect(await withLock(file, noWait, async () => 'free')).toBe('free');
});

test('a process that is killed gives the lock back', async () => {
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', holdsForEver], {
    env: { ...process.env, LOCK: file, MODULE: import.meta.resolve('#lib/guest/lock.js') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  holder.kill('SIGKILL');
  await once(holder, 'close');
  expect(
    await withLock(
      file,
      () => {},
      async () => 'free',
    ),
  ).toBe('free');
});

const holdsForEver = `
  const { withLock } = await import(process.env.MODULE);
  await withLock(process.env.LOCK, () => {}, async () => {
    console.log('held');
    await new Promise(() => setInterval(() => {}, 1000));
  });
`;

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
