import { execFile } from 'node:child_process';
import { inspect, promisify } from 'node:util';
import { type Connection, connect, createServer, Device, RdmaError, RemoteMemory } from 'node-rdma';
import { CmId, EventChannel } from 'node-rdma/cm';
import { useStandIn } from 'node-rdma/testing';
import { CompletionQueue, ProtectionDomain, QueuePair } from 'node-rdma/verbs';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';

beforeAll(() => void useStandIn());

const oneLine = (value: unknown): string => inspect(value, { breakLength: Number.POSITIVE_INFINITY });

describe('util.inspect shows', () => {
  test('a connection and a server with their addresses and counts', async () => {
    const server = createServer((connection: Connection) => connection.on('error', () => {}));
    onTestFinished(() => server.close());
    expect(oneLine(server)).toBe('Server { listening: false, address: null, connections: 0 }');
    await server.listen({ port: 7471 });
    const connection = connect({ host: '10.0.0.1', port: 7471 });
    expect(oneLine(connection)).toMatch(/^Connection \{ state: 'connecting', localAddress: undefined/);
    await connection.send(Buffer.alloc(5));
    expect(oneLine(connection)).toMatch(
      /^Connection \{ state: 'established', localAddress: '10\.0\.0\.1', .*bytesWritten: 5, peerToPeer: \{ requested: false/,
    );
    expect(oneLine(server)).toMatch(
      /^Server \{ listening: true, address: \{ .*port: 7471 \}, connections: 1 \}$/,
    );
    await connection.close();
    expect(oneLine(connection)).toMatch(/^Connection \{ state: 'closed'/);
  });

  test('a request with what the client says', async () => {
    const server = createServer();
    onTestFinished(() => server.close());
    const shown = new Promise<string>((resolve) => {
      server.on('request', (request) => {
        resolve(oneLine(request));
        request.reject();
      });
    });
    await server.listen({ port: 7472 });
    const connection = connect({ host: '10.0.0.1', port: 7472, privateData: Buffer.from('hi') });
    connection.on('error', () => {});
    expect(await shown).toMatch(
      /^ConnectionRequest \{ remoteAddress: '10\.0\.0\.1', remotePort: \d+, peerToPeer: false, privateData: <Buffer 68 69> \}$/,
    );
  });

  test('memory by its keys and length, and none of its bytes', async () => {
    const device = Device.open('standin0');
    onTestFinished(() => device.close());
    const region = await new ProtectionDomain(device).allocate(1 << 20, { access: ['remote-read'] });
    expect(oneLine(region)).toMatch(
      /^MemoryRegion \{ lkey: \d+, rkey: \d+, address: \d+n, length: 1048576, access: \[ 'remote-read' \], state: 'open' \}$/,
    );
    expect(oneLine(new RemoteMemory(255n, 7, 12))).toBe(
      "RemoteMemory { address: '0xff', rkey: 7, length: 12 }",
    );
  });

  test('the objects of cm and verbs by what tells one from another', async () => {
    const device = Device.open('standin0');
    const channel = new EventChannel();
    const id = new CmId(channel);
    onTestFinished(async () => {
      await Promise.all([channel.close(), device.close()]);
    });
    expect(oneLine(device)).toBe(
      "Device { name: 'standin0', driver: 'standin', transport: 'iwarp', state: 'open' }",
    );
    expect(oneLine(channel)).toBe("EventChannel { state: 'open' }");
    await id.resolveAddress({ address: '10.0.0.1', port: 1 });
    expect(oneLine(id)).toMatch(
      /^CmId \{ device: 'standin0', localAddress: '10\.0\.0\.1', localPort: \d+, remoteAddress: '10\.0\.0\.1', remotePort: 1, state: 'open' \}$/,
    );
    const pd = new ProtectionDomain(device);
    const queue = new CompletionQueue(device, { entries: 16 });
    const pair = new QueuePair(pd, { sendCompletionQueue: queue, receiveCompletionQueue: queue });
    expect(oneLine(queue)).toMatch(/^CompletionQueue \{ entries: 16/);
    expect(oneLine(pair)).toMatch(/^QueuePair \{ number: \d+, limits: \{ maxSendWr: 128/);
    await id.close();
    expect(oneLine(id)).toBe("CmId { state: 'closed' }");
  });

  test('an error with its code, its call and its address', () => {
    const error = new RdmaError('ECONNREFUSED', 'rdma_connect ECONNREFUSED 10.0.0.1:1', {
      ...{ errno: -111, syscall: 'rdma_connect', address: '10.0.0.1', port: 1 },
    });
    expect(inspect(error)).toMatch(/^RdmaError.*: rdma_connect ECONNREFUSED 10\.0\.0\.1:1\n/);
    expect(inspect(error)).toContain("syscall: 'rdma_connect'");
  });
});

const program = `
  const { connect, createServer } = await import('node-rdma');
  const { useStandIn } = await import('node-rdma/testing');
  useStandIn();
  const server = createServer((connection) => connection.send(Buffer.from('hello')));
  await server.listen({ port: 7471 });
  const connection = connect({ host: '10.0.0.1', port: 7471, peerToPeer: true });
  await connection.receive();
  await connection.close();
  await connect({ host: '10.0.0.1', port: 1 }).established.catch(() => {});
  await server.close();
`;

test('NODE_DEBUG=rdma explains the life of a connection', async () => {
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: new URL('../../..', import.meta.url),
    env: { ...process.env, NODE_DEBUG: 'rdma' },
  });
  const lines = stderr.trim().split('\n');
  const linesOf = (number: number) =>
    lines.flatMap((line) => new RegExp(`^RDMA \\d+: connection ${number} (.*)$`).exec(line)?.[1] ?? []);
  expect(linesOf(1)).toEqual([
    'begins',
    'asks the peer for the connection',
    expect.stringMatching(/^is between 10\.0\.0\.1:\d+ here and 10\.0\.0\.1:7471$/),
    'is established: both ends know of one another',
    'posts the 0-byte Read that MPA lets go first',
    'posts GO: the peer may send when it has come',
    'has its Read answered: the path works in both directions',
    'is ready',
    'lets its sends flow',
    'has ended, in order; 5 bytes read, 0 written',
  ]);
  expect(linesOf(2)).toContain('has received GO: the peer is ready');
  expect(linesOf(3).at(-1)).toBe(
    'has ended, by rdma_connect ECONNREFUSED 10.0.0.1:1; 0 bytes read, 0 written',
  );
});
