import { describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { devices } from '../support/devices.js';

describe.each(devices)('on %s a process', (_, { device, address }) => {
  test.each([
    ['exit', 7, 'exit 7\n'],
    ['exit in a handler', 7, 'exit 7\n'],
    ['uncaught exception', 1, 'exit 1\n'],
    ['uncaught exception in a handler', 1, 'exit 1\n'],
    ['SIGTERM', 'SIGTERM', ''],
    ['closed', 0, 'exit 0\n'],
    ['unreferenced', 0, 'exit 0\n'],
    ['unreferenced with receives posted', 0, 'exit 0\n'],
  ] as const)('ends well: %s', async (mode, status, stdout) => {
    const child = await runChild('test/lifecycle/children/exiting-process.js', [mode, device, address]);
    expect(child.status, child.stderr).toBe(status);
    expect(child.stdout).toBe(stdout);
    if (mode.startsWith('uncaught')) expect(child.stderr).toContain('nobody catches this');
    else expect(child.stderr).toBe('');
  });
});
