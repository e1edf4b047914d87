import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const command = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

interface Result {
  status: number;
  stdout: string;
  stderr: string;
}

function nodeRdma(...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    execFile(process.execPath, [command, ...args], (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe('the command', () => {
  test.each([
    [[]],
    [['nonsense']],
    [['ping']],
    [['ping', 'host', '--size', '25']],
    [['ping', 'host', '--size', '65536']],
    [['ping', 'host', '--count', '0']],
    [['ping', 'host', '--port', '0']],
    [['ping', 'host', '--interval', 'often']],
    [['ping', 'host', '--negotiate', 'perhaps']],
    [['perf']],
    [['perf', 'host', '--size', '17M']],
    [['perf', 'host', '--operation', 'write']],
    [['soft', 'add', 'siw0']],
    [['soft', 'add', 'siw0', 'eth0', '--type', 'mlx5']],
    [['devices', 'extra']],
    [['vm']],
    [['vm', '--hosts', '1', '--', 'true']],
  ])('ends with status 2 and says why for %j', async (args) => {
    const { status, stderr, stdout } = await nodeRdma(...args);
    expect(status, stderr + stdout).toBe(2);
    expect(stderr).not.toBe('');
    expect(stdout).toBe('');
  });

  test.each(['', 'devices', 'ping', 'perf', 'soft', 'soft add', 'vm'])(
    'shows help for "%s" on stdout, with status 0',
    async (name) => {
      const words = name.split(' ').filter(Boolean);
      const { status, stdout } = await nodeRdma(...words, '--help');
      expect(status).toBe(0);
      expect(stdout).toContain(`Usage: ${['node-rdma', ...words].join(' ')}`);
    },
  );

  test('tells its version', async () => {
    expect((await nodeRdma('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('tells an error as JSON on request, with status 1', async () => {
    const { status, stdout } = await nodeRdma('ping', 'no such host', '--json');
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { message: expect.any(String), code: expect.any(String) },
    });
  });

  test('does not fall over a reader that has heard enough', async () => {
    const { status, stderr } = await new Promise<Result>((resolve) => {
      const line = `"${process.execPath}" "${command}" --help | true`;
      execFile('bash', ['-c', `set -o pipefail; ${line}`], (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });
});
