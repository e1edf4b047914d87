import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Connection,
  type ConnectOptions,
  connect,
  createServer,
  RemoteMemory,
  type ServerOptions,
} from 'node-rdma';
import { useStandIn } from 'node-rdma/testing';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { rejection } from '../support/connection-pair.js';

type Transport = 'iwarp' | 'infiniband';

interface Pair {
  client: Connection;
  accepted: Connection;
}

const host = '10.0.0.1';
let nextPort = 7000;

async function listen(
  options: ServerOptions,
  onConnection: (connection: Connection) => void,
): Promise<number> {
  const server = createServer(options, onConnection);
  onTestFinished(() => server.close());
  const port = nextPort++;
  await server.listen({ port });
  return port;
}

async function openPair(client: Partial<ConnectOptions> = {}, server: ServerOptions = {}): Promise<Pair> {
  let resolve: (connection: Connection) => void = () => {};
  const promise = new Promise<Connection>((settle) => {
    resolve = settle;
  });
  const port = await listen(server, (connection) => {
    connection.on('error', () => {});
    resolve(connection);
  });
  const dialled = connect({ host, port, ...client });
  onTestFinished(() => void dialled.destroy());
  return { client: dialled, accepted: await promise };
}

/** What a stand-in promises; each file of tests is an environment of its own, and has one of its own. */
export function describeStandIn(transport: Transport): void {
  const standIn = useStandIn({ transport });
  const iwarp = transport === 'iwarp';

  afterEach(() => {
    standIn.heal();
    standIn.delay = 0;
  });

  describe(`a stand-in for ${transport}`, () => {
    test('comes once, and before any other device is used', () => {
      expect(() => useStandIn()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_IN_USE' }));
    });

    test.each([[{}], [{ peerToPeer: true }], [{ flowControl: true }]])(
      'carries messages in both directions, in order, with %j',
      async (options) => {
        const { client, accepted } = await openPair(options);
        const count = 500;
        const exchange = async (from: Connection, to: Connection) => {
          for (let i = 0; i < count; i++) {
            await from.send(Buffer.from(`message ${i}`));
            expect((await to.receive())?.toString()).toBe(`message ${i}`);
          }
        };
        await exchange(client, accepted);
        await exchange(accepted, client);
        await client.close();
        expect(await accepted.receive()).toBeNull();
      },
    );

    test('lets the accepting side speak first with peerToPeer', async () => {
      const { client, accepted } = await openPair({ peerToPeer: true });
      await accepted.send(Buffer.from('first'));
      expect((await client.receive())?.toString()).toBe('first');
      expect(client.peerToPeer).toMatchObject({ negotiated: true, rtr: 'read' });
    });

    test('reads and writes what was granted, and nothing else', async () => {
      const { client, accepted } = await openPair();
      const region = await client.allocate(64, { access: ['remote-read', 'remote-write'] });
      region.bytes.set(Buffer.from('to be read'));
      await client.send(region.remote().toBytes());
      const remote = RemoteMemory.fromBytes((await accepted.receive())!);
      expect((await accepted.read(remote, 10)).toString()).toBe('to be read');
      await accepted.write(remote, Buffer.from('written'));
      await accepted.send(Buffer.from('done'));
      await client.receive();
      expect(Buffer.from(region.bytes.subarray(0, 10)).toString()).toBe('writtenead');
      const secret = await client.allocate(64);
      expect((await rejection(accepted.read(secret.remote()))).code).toMatch(/ECONNRESET|ERR_RDMA_WC_/);
    });

    test('holds a fast sender back with flow control', async () => {
      const { client, accepted } = await openPair({ flowControl: true }, { receiveDepth: 4 });
      const sends = Array.from({ length: 100 }, (_, i) => client.send(Buffer.from(String(i))));
      for (let turn = 0; turn < 20; turn++) await nextTurn();
      expect(client.writableLength).toBeGreaterThan(0);
      for (let i = 0; i < 100; i++) expect((await accepted.receive())?.toString()).toBe(String(i));
      await Promise.all(sends);
    });

    test('refuses a client where nobody listens', async () => {
      const connection = connect({ host, port: 1 });
      expect((await rejection(connection.established)).code).toBe('ECONNREFUSED');
    });

    test('rejects with what the server says', async () => {
      const server = createServer();
      onTestFinished(() => server.close());
      server.on('request', (request) => request.reject(Buffer.from('no')));
      const port = nextPort++;
      await server.listen({ port });
      const error = await rejection(connect({ host, port, peerToPeer: true }).established);
      expect(error).toMatchObject({ code: 'ERR_RDMA_REJECTED', privateData: Buffer.from('no') });
    });

    test.each([
      ['connect', 'EHOSTUNREACH'],
      ['connect', 'ETIMEDOUT'],
      ['allocate', 'ENOMEM'],
    ] as const)('fails the next %s with %s, and not the one after', async (what, code) => {
      const port = await listen({}, (connection) => connection.on('error', () => {}));
      standIn.failNext(what, code);
      expect((await rejection(connect({ host, port }).established)).code).toBe(code);
      const second = connect({ host, port });
      await second.established;
      await second.close();
    });

    test('fails the next listen', async () => {
      const server = createServer();
      standIn.failNext('listen', 'EADDRINUSE');
      expect((await rejection(server.listen({ port: nextPort++ }))).code).toBe('EADDRINUSE');
      await server.close();
    });

    test('fails the next send with a status, which ends the connection at both ends', async () => {
      const { client, accepted } = await openPair();
      standIn.failNext('send', 'RETRY_EXC_ERR');
      expect((await rejection(client.send(Buffer.from('lost')))).code).toBe('ERR_RDMA_WC_RETRY_EXC_ERR');
      expect((await rejection(client.closed)).code).toBe('ERR_RDMA_WC_RETRY_EXC_ERR');
      expect(await accepted.receive()).toBeNull();
    });

    test('refuses a failure that there is none of', () => {
      expect(() => standIn.failNext('connect', 'RETRY_EXC_ERR')).toThrow(TypeError);
      expect(() => standIn.failNext('send', 'ECONNREFUSED')).toThrow(TypeError);
      expect(() => standIn.failNext('sleep' as 'send', 'EINVAL')).toThrow(TypeError);
    });

    test('loses nothing in a partition that ends', async () => {
      const { client, accepted } = await openPair({ flowControl: true });
      await client.ready;
      standIn.partition();
      const sent = client.send(Buffer.from('late'));
      expect((await rejection(accepted.receive({ timeout: 50 }))).code).toBe('ETIMEDOUT');
      standIn.heal();
      await sent;
      expect((await accepted.receive())?.toString()).toBe('late');
    });

    test('takes the time that it was told, each way', async () => {
      standIn.delay = 20;
      const start = performance.now();
      const { client } = await openPair();
      await client.established;
      expect(performance.now() - start).toBeGreaterThanOrEqual(39);
    });

    test('ends every connection, as the death of a peer does', async () => {
      const { client, accepted } = await openPair({ flowControl: true });
      await client.ready;
      standIn.disconnectAll();
      for (const end of [client, accepted]) expect((await rejection(end.closed)).code).toBe('ECONNRESET');
    });

    test(`${iwarp ? 'ends the connection' : 'waits'} when nothing was posted to receive`, async () => {
      const { client, accepted } = await openPair(
        { highWaterMark: 2 ** 20 },
        { receiveDepth: 1, maxQueuedBytes: 1 },
      );
      const sends = Promise.allSettled(Array.from({ length: 8 }, () => client.send(Buffer.alloc(8))));
      if (iwarp) {
        expect((await rejection(accepted.closed)).code).toBe('ERR_RDMA_RECEIVE_OVERFLOW');
      } else {
        for (let i = 0; i < 8; i++) expect(await accepted.receive()).toHaveLength(8);
      }
      await sends;
    });

    test('shows what a program has left open, which is nothing here', async () => {
      const { client, accepted } = await openPair({ peerToPeer: true });
      await client.send(Buffer.from('x'));
      await accepted.receive();
      expect(standIn.open.StandInQueuePair).toBe(2);
      await client.close();
      await accepted.close();
      expect(standIn.open.StandInQueuePair ?? 0).toBe(0);
    });
  });
}
