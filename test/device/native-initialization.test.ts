import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { useBinding } from '#lib/binding/addon.js';

const addon =
  process.env.NODE_RDMA_ADDON ??
  createRequire(import.meta.url)('node-gyp-build').path(new URL('../../..', import.meta.url).pathname);

/** Runs a function body in a worker with the bare addon as `native`, and returns what it posts. */
async function inWorker(body: string): Promise<unknown> {
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     const native = require(workerData);
     ${body}`,
    { eval: true, workerData: addon },
  );
  const ended = once(worker, 'exit');
  const [message] = await once(worker, 'message');
  expect(await ended).toEqual([0]);
  return message;
}

test('before it is initialised every function says so, and the environment ends well', async () => {
  const codes = (await inWorker(`
    const codes = {};
    for (const [name, call] of Object.entries(native)) {
      if (typeof call !== 'function' || name === 'initialize' || name === 'objectCounts') continue;
      try { call(); codes[name] = 'nothing was thrown'; } catch (error) { codes[name] = error.code; }
    }
    parentPort.postMessage(codes);
  `)) as Record<string, string>;
  expect(new Set(Object.values(codes))).toEqual(new Set(['ERR_RDMA_UNAVAILABLE']));
  expect(Object.keys(codes)).toHaveLength(
    Object.values(useBinding().native).filter((value) => typeof value === 'function').length - 2,
  );
});

test('hooks that are none leave it uninitialised, and good ones can follow', async () => {
  const codes = await inWorker(`
    const good = { createError() {}, onCompletions() {}, onCmEvent() {}, onAsyncEvent() {} };
    const codes = [];
    const attempt = (hooks) => {
      try { native.initialize(hooks); codes.push('ok'); } catch (error) { codes.push(error.code ?? error.message); }
    };
    attempt({});
    attempt({ ...good, onCompletions: 1 });
    attempt({ ...good, get onAsyncEvent() { throw new Error('from the getter'); } });
    attempt({ ...good, get onAsyncEvent() { attempt(good); return () => {}; } });
    attempt(good);
    parentPort.postMessage(codes);
  `);
  expect(codes).toEqual([
    'ERR_INVALID_ARG_TYPE',
    'ERR_INVALID_ARG_TYPE',
    'from the getter',
    'ok',
    'ERR_RDMA_INITIALIZED',
    'ERR_RDMA_INITIALIZED',
  ]);
});

test('a hook that throws, or makes no error, does not bring the addon down', async () => {
  const results = await inWorker(`
    const results = [];
    native.initialize({
      createError(errno) { if (errno === -19) throw 'thrown'; return undefined; },
      onCompletions() {}, onCmEvent() {}, onAsyncEvent() {},
    });
    try { native.openDevice('nosuch'); } catch (error) { results.push(error); }
    const channel = native.createEventChannel();
    try { native.createId(channel, 0xffff); } catch (error) { results.push(error); }
    parentPort.postMessage(results.map(String));
    native.destroyEventChannel(channel);
  `);
  expect(results).toEqual(['thrown', 'undefined']);
});
