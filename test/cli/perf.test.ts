import { beforeEach, describe, expect, test } from 'vitest';
import { nodeRdma, RunningCommand } from './command.js';

/** siw, and rxe with itself. */
describe.each(['10.77.0.1', '10.78.0.1'])('node-rdma perf on %s', (address) => {
  const port = '7476';
  let server: RunningCommand;
  beforeEach(async () => {
    server = new RunningCommand('perf', '--listen', address, '--port', port);
    await server.nextOf('listening');
  });

  async function perf(...args: string[]): Promise<Record<string, unknown>> {
    const all = ['perf', address, '-p', port, '-t', '0.3', '--json', ...args];
    const { status, stdout, stderr } = await nodeRdma(all);
    expect(status, stdout + stderr).toBe(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  test.each([
    ['send', 100_000],
    ['read', 64],
  ])('measures round trips of %s with %i bytes', async (operation, size) => {
    const result = await perf('-o', operation, '-s', String(size));
    expect(result).toMatchObject({ type: 'latency', operation, size });
    const { count, minimum, p50, maximum } = result.rtt as Record<string, number>;
    expect(count).toBeGreaterThan(0);
    expect(minimum).toBeLessThanOrEqual(p50!);
    expect(p50).toBeLessThanOrEqual(maximum!);
    expect(await server.nextOf('served')).toMatchObject({ operation, size });
  });

  test.each(['send', 'write', 'read'])('measures the throughput of %s', async (operation) => {
    const { bytes, count, time } = await perf('-b', '-o', operation, '-s', '16k', '-d', '8');
    expect(Number(count)).toBeGreaterThan(0);
    expect(bytes).toBe(Number(count) * 16 * 1024);
    expect(Number(time)).toBeGreaterThanOrEqual(300);
    expect(await server.nextOf('served')).toMatchObject({ operation });
  });

  test('serves clients until it is interrupted', async () => {
    await perf('--peer-to-peer');
    server.interrupt();
    expect(await server.status()).toBe(0);
  });
});
