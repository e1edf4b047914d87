import { expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { siw } from '../support/devices.js';

// libsiw takes the queue that lies at offset 0x90000 for an invalid one: 36 pairs of queue pairs reach it.
test('200 connections are open at once in one process on siw, and each carries messages', async () => {
  const child = await runChild('test/lifecycle/children/many-connections.js', [
    siw.device,
    siw.address,
    '200',
  ]);
  expect(child.status, child.stderr).toBe(0);
  expect(JSON.parse(child.stdout)).toEqual({ open: 200, exchanged: 200, left: {} });
});
