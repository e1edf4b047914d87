import { createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodeRdma, RunningCommand } from './command.js';

const address = '10.77.0.1';

async function startServer(...args: string[]): Promise<{ server: RunningCommand; port: string }> {
  const server = new RunningCommand('ping', '--listen', address, '--port', '0', ...args);
  const { port } = await server.nextOf('listening');
  return { server, port: String(port) };
}

describe('node-rdma ping', () => {
  test('tells its statistics as ping(8) does, and draws a histogram', async () => {
    const { server, port } = await startServer();
    const { status, stdout } = await nodeRdma([
      ...['ping', address, '-p', port, '-c', '5', '-i', '0', '--histogram'],
    ]);
    expect(status, stdout).toBe(0);
    expect(stdout.match(/^64 bytes from 10\.77\.0\.1: seq=\d time=\d+\.\d{3} ms$/gm)).toHaveLength(5);
    expect(stdout).toMatch(/^5 transmitted, 5 received, 0% loss, time \d+ ms$/m);
    expect(stdout).toMatch(/^rtt min\/avg\/max\/mdev = [\d.]+\/[\d.]+\/[\d.]+\/[\d.]+ ms$/m);
    expect(stdout).toMatch(/^ *\S+ to \S+ ms +\d+ {2}[█▏▎▍▌▋▊▉]+$/m);
    expect(await server.nextOf('served')).toMatchObject({ from: address, pings: 5 });
  });

  test('sums up at an interrupt, and both ends end in order', async () => {
    const { server, port } = await startServer();
    const client = new RunningCommand('ping', address, '-p', port, '-i', '0.01');
    await client.nextOf('connected');
    for (let sequence = 0; sequence < 3; sequence++)
      expect(await client.next()).toMatchObject({ type: 'reply', sequence });
    client.interrupt();
    const { transmitted, received } = await client.nextOf('statistics');
    expect(received).toBeGreaterThanOrEqual(3);
    expect(Number(transmitted) - Number(received)).toBeLessThanOrEqual(1);
    expect(await client.status()).toBe(0);
    server.interrupt();
    expect(await server.status()).toBe(0);
  });

  test('fails with the code of the connection when nobody listens', async () => {
    const { status, stderr } = await nodeRdma(['ping', address, '-p', '9', '-c', '1']);
    expect(status).toBe(1);
    expect(stderr).toContain('ECONNREFUSED');
  });

  test('counts a ping as lost that is not answered in its time', async () => {
    const mute = createServer();
    onTestFinished(() => mute.close());
    mute.on('connection', (connection) => connection.on('error', () => {}));
    await mute.listen({ host: address });
    const port = String(mute.address()!.port);
    const { status, stdout } = await nodeRdma(['ping', address, '-p', port, '-W', '2', '--json']);
    expect(status).toBe(1);
    const said = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(said.at(-2)).toMatchObject({ type: 'failure', sequence: 0, error: { code: 'ETIMEDOUT' } });
    expect(said.at(-1)).toMatchObject({ type: 'statistics', transmitted: 1, received: 0, rtt: { count: 0 } });
  });

  test('a server goes on when a client has said something else', async () => {
    const { server, port } = await startServer();
    const { connect } = await import('node-rdma');
    const stranger = connect({ host: address, port: Number(port) });
    await stranger.send(Buffer.from('hello'));
    expect(await server.nextOf('failure')).toMatchObject({
      error: { message: "5 bytes are no message of rping's" },
    });
    stranger.destroy();
    expect((await nodeRdma(['ping', address, '-p', port, '-c', '1'])).status).toBe(0);
  });
});
