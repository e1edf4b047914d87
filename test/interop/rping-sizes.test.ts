import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Pinger, queues, textLimits } from '#lib/cli/ping/protocol.js';
import { run } from '../cli/command.js';
import { rxe, siw } from '../support/devices.js';

const { minimum, maximum } = textLimits;

/** Every short one, and more and more apart up to the longest. */
function* sizes(): Generator<number> {
  for (let size: number = minimum; size < maximum; size = size < 160 ? size + 1 : Math.floor(size * 1.3))
    yield size;
  yield maximum;
}

/** C's server takes no text that is longer than its own. */
async function startServer(address: string): Promise<void> {
  const server = spawn('rping', ['-s', '-a', address, '-S', String(maximum)], { stdio: 'ignore' });
  onTestFinished(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'close');
  });
  while (server.exitCode === null)
    if ((await run('rdma', 'resource', 'show', 'cm_id')).includes('LISTEN')) return;
  throw new Error('rping has ended');
}

describe.each([siw, rxe])('a C server on $device', ({ address }) => {
  test('answers pings of all sizes that it takes', async () => {
    await startServer(address);
    const connection = connect({ host: address, port: 7174, ...queues });
    onTestFinished(() => void connection.destroy());
    let number = 0;
    for (const size of sizes()) {
      const pinger = await Pinger.open(connection, size);
      expect(await pinger.ping(number++, 10_000)).toHaveLength(size - 1);
    }
    await connection.close();
  });
});
