import { describe, expect, test } from 'vitest';
import { Lifecycle } from '#lib/connection/lifecycle.js';

const failure = new Error('lost');

describe('the error that ends a connection', () => {
  test('is emitted when nobody holds a promise', () => {
    const lifecycle = new Lifecycle();
    lifecycle.end(failure);
    expect(lifecycle.close(failure, false)).toBe(true);
  });

  test('is not emitted when a promise of the program has carried it', () => {
    const lifecycle = new Lifecycle();
    lifecycle.errorCarried();
    lifecycle.end(failure);
    expect(lifecycle.close(failure, true)).toBe(false);
  });

  test('reaches who waits for the establishment', async () => {
    const lifecycle = new Lifecycle();
    const established = lifecycle.established.promise;
    lifecycle.end(failure);
    expect(lifecycle.close(failure, false)).toBe(false);
    await expect(established).rejects.toBe(failure);
  });

  test('reaches who waits for the end', async () => {
    const lifecycle = new Lifecycle();
    lifecycle.established.settle(undefined);
    const { promise } = lifecycle.closed;
    lifecycle.end(failure);
    expect(lifecycle.close(failure, false)).toBe(false);
    await expect(promise).rejects.toBe(failure);
  });

  test('is emitted although the establishment was waited for and reached', () => {
    const lifecycle = new Lifecycle();
    void lifecycle.established.promise;
    lifecycle.established.settle(undefined);
    lifecycle.end(failure);
    expect(lifecycle.close(failure, false)).toBe(true);
  });

  test('is what promises reject with that are asked for afterwards', async () => {
    const lifecycle = new Lifecycle();
    lifecycle.end(failure);
    lifecycle.close(failure, true);
    await expect(lifecycle.established.promise).rejects.toBe(failure);
    await expect(lifecycle.closed.promise).rejects.toBe(failure);
  });
});

test('who only waits for the outcome is told of it, and carries no error', async () => {
  const lifecycle = new Lifecycle();
  const outcome = lifecycle.closed.outcome;
  lifecycle.end(failure);
  expect(lifecycle.close(failure, true)).toBe(true);
  await expect(outcome).resolves.toBeUndefined();
});
