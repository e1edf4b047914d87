import { describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { devices } from '../support/devices.js';

describe.each(devices)('on %s', (_, { device, address }) => {
  test('a worker is terminated in every state of a connection, and leaves nothing behind', {
    timeout: 180_000,
  }, async () => {
    const child = await runChild('test/lifecycle/children/terminated-workers.js', [device, address]);
    expect(child.status, child.stderr).toBe(0);
    expect(child.stderr).toBe('');
    expect(JSON.parse(child.stdout)).toEqual({
      idle: {},
      listening: {},
      resolving: {},
      requested: {},
      connected: {},
      registering: {},
      'under traffic': {},
      polling: {},
      closing: {},
    });
  });

  test('the threads of the pool outlive the only worker that has the addon', async () => {
    const child = await runChild('test/lifecycle/children/unloaded-worker.js', [device]);
    expect(child).toEqual({ status: 0, stdout: 'alive\n', stderr: '' });
  });

  test('two workers and the main thread use one device at once', async () => {
    const child = await runChild('test/lifecycle/children/sharing-workers.js', [device, address]);
    expect(child.status, child.stderr).toBe(0);
    expect(JSON.parse(child.stdout)).toEqual({ exchanged: [200, 200, 200], left: {} });
  });
});
