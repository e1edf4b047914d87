import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createRxePair, type Host, type Network } from '#lib/guest/network.js';

const example = fileURLToPath(new URL('../../scripts/examples/pingpong.js', import.meta.url));
const iterations = 200;
const size = 1000;

type Implementation = 'C' | 'Node';

let network: Network;
beforeAll(async () => {
  network = await createRxePair();
});
afterAll(() => network.close());

/** From sysfs: a device that this process had opened could not be removed before its end. */
function gidIndex({ device, address }: Host): string {
  const [a, b, c, d] = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
  const gid = `0000:0000:0000:0000:0000:ffff:${a}${b}:${c}${d}`;
  const folder = `/sys/class/infiniband/${device}/ports/1/gids`;
  const index = readdirSync(folder).find((name) => readFileSync(`${folder}/${name}`, 'utf8').trim() === gid);
  if (index === undefined) throw new Error(`${device} has no GID of ${address}`);
  return index;
}

function start(implementation: Implementation, kind: string, host: Host, port: number, server?: string) {
  const program = implementation === 'C' ? [`ibv_${kind}_pingpong`] : [process.execPath, example, kind];
  const [command, ...rest] = host.command([
    ...program,
    ...['-d', host.device, '-g', gidIndex(host), '-p', String(port)],
    ...['-n', String(iterations), '-s', String(size), '-r', '100'],
    ...(server === undefined ? [] : [server]),
  ]);
  const child = spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]).then((parts) => parts.join(''));
  const ended = once(child, 'close').then(async ([status]) => ({ status, output: await output }));
  return { child, ended };
}

/** The kernel's table of TCP sockets: C's server does not say when it listens. */
async function listening(child: ChildProcess, port: number): Promise<void> {
  while (child.exitCode === null) {
    const ss = spawn('ss', ['-Hltn', `sport = :${port}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    if ((await text(ss.stdout)).trim() !== '') return;
  }
}

describe.each(['rc', 'srq', 'ud'])('ibv_%s_pingpong', (kind) => {
  test.each([
    ['C', 'Node'],
    ['Node', 'C'],
    ['Node', 'Node'],
  ] as const)('a %s server and a %s client send each other messages', async (serverIs, clientIs) => {
    const port = 18515;
    const server = start(serverIs, kind, network.host(1), port);
    await listening(server.child, port);
    const client = start(clientIs, kind, network.host(2), port, '127.0.0.1');
    const ends = await Promise.all([server.ended, client.ended]);
    for (const { status, output } of ends) expect(status, output).toBe(0);
    const said = (implementation: Implementation, { output }: { output: string }) =>
      expect(output).toMatch(
        implementation === 'C'
          ? `${iterations} iters in`
          : `${iterations} messages of ${size} bytes each way`,
      );
    said(serverIs, ends[0]);
    said(clientIs, ends[1]);
  });
});
