import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { type Connection, type ConnectionRequest, capabilities, connect, createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dial, listen, nextConnection, once, openPair, rejection } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';

const nextRequest = (server: {
  once(name: 'request', listener: (request: ConnectionRequest) => void): unknown;
}) => new Promise<ConnectionRequest>((resolve) => server.once('request', resolve));

describe.each(devices)('a connection over %s', (_, device) => {
  test('can be written to before it is established', async () => {
    const { server, port } = await listen(device);
    const client = dial(device, port);
    expect(client.state).toBe('connecting');
    const sent = client.send(Buffer.from('early'));
    const accepted = await nextConnection(server);
    expect((await accepted.receive())!.toString()).toBe('early');
    await sent;
    expect(client.state).toBe('established');
  });

  test('knows both addresses', async () => {
    const { client, accepted, port } = await openPair(device);
    expect(client.remoteAddress).toBe(device.address);
    expect(client.remotePort).toBe(port);
    expect(accepted.localAddress).toBe(device.address);
    expect(accepted.localPort).toBe(port);
    expect(accepted.remotePort).toBe(client.localPort);
    expect(inspect(client)).toContain("state: 'established'");
  });

  test('finds a host by its name', async () => {
    const { server, port } = await listen(device);
    const client = connect({ host: 'no-such-host.invalid', port });
    expect(await rejection(client.established)).toMatchObject({ syscall: 'getaddrinfo' });
    expect(server.connections).toBe(0);
  });

  test('is refused with one code where nobody listens', async () => {
    const { server, port } = await listen(device);
    await server.close();
    const client = dial(device, port);
    const queued = rejection(client.send(Buffer.from('lost')));
    const error = await rejection(client.established);
    expect(error).toMatchObject({
      code: 'ECONNREFUSED',
      address: device.address,
      port,
      syscall: 'rdma_connect',
    });
    expect(await queued).toBe(error);
    expect(await rejection(client.closed)).toBe(error);
    expect(client.state).toBe('closed');
  });

  test.each([
    ['plain', {}],
    ['negotiating', { peerToPeer: true }],
  ])('carries private data both ways when it is %s', async (_, options) => {
    const { server, port } = await listen(device);
    const asked = nextRequest(server);
    const client = dial(device, port, { privateData: Buffer.from('who I am'), ...options });
    const request = await asked;
    const accepted = request.accept({ privateData: Buffer.from('who you are') });
    await Promise.all([client.established, accepted.established]);
    const text = (data: Buffer | undefined) => data!.toString().replace(/\0+$/, '');
    expect(text(request.privateData)).toBe('who I am');
    expect(text(accepted.privateData)).toBe('who I am');
    expect(text(client.privateData)).toBe('who you are');
    if (device.iwarp || 'peerToPeer' in options) expect(client.privateData!.length).toBe(11);
  });

  test('takes as much private data as the capabilities say, and no more', async () => {
    const { negotiated, connectPrivateData } = capabilities(device.device);
    const { port } = await listen(device);
    for (const [limit, options] of [
      [connectPrivateData, {}],
      [negotiated.connect, { peerToPeer: true }],
    ] as const) {
      const fits = dial(device, port, { privateData: Buffer.alloc(limit, 1), ...options });
      await fits.established;
      const tooMuch = dial(device, port, { privateData: Buffer.alloc(limit + 1, 1), ...options });
      expect(await rejection(tooMuch.established)).toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    }
  });

  test.each([
    ['plain', {}],
    ['negotiating', { peerToPeer: true }],
  ])('is told what the server says when it rejects a %s request', async (_, options) => {
    const { server, port } = await listen(device);
    server.on('request', (request) => request.reject(Buffer.from('not you')));
    const client = dial(device, port, options);
    const error = await rejection(client.established);
    expect(error).toMatchObject({ code: 'ERR_RDMA_REJECTED' });
    const { privateData } = error as unknown as { privateData: Buffer };
    expect(privateData.toString().replace(/\0+$/, '')).toBe('not you');
  });

  test('is accepted or rejected once', async () => {
    const { server, port } = await listen(device);
    const asked = nextRequest(server);
    const client = dial(device, port);
    const request = await asked;
    const accepted = request.accept();
    for (const again of [() => request.accept(), () => request.reject()]) {
      expect(again).toThrow(expect.objectContaining({ code: 'ERR_RDMA_REQUEST_ANSWERED' }));
    }
    await Promise.all([client.established, accepted.established]);
  });

  test('is rejected when the server has as many as it may', async () => {
    const { server, port } = await listen(device, { maxConnections: 1 });
    const first = dial(device, port);
    await first.established;
    const dropped = once(server as never, 'drop');
    const second = dial(device, port);
    expect(await rejection(second.established)).toMatchObject({ code: 'ERR_RDMA_REJECTED' });
    await dropped;
  });

  test('fails in time when the server does not answer', async () => {
    const { server, port } = await listen(device);
    const asked = nextRequest(server);
    const client = dial(device, port, { timeout: 300 });
    await asked;
    expect(await rejection(client.established)).toMatchObject({
      code: 'ETIMEDOUT',
      address: device.address,
      port,
    });
    expect(await rejection(client.closed)).toMatchObject({ code: 'ETIMEDOUT' });
  });

  test('can be aborted while it is made', async () => {
    const { server, port } = await listen(device);
    const asked = nextRequest(server);
    const controller = new AbortController();
    const client = dial(device, port, { signal: controller.signal });
    const queued = rejection(client.send(Buffer.from('never')));
    await asked;
    controller.abort(new Error('changed my mind'));
    const error = await rejection(client.established);
    expect(error).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    expect(await queued).toBe(error);
  });

  test('that was aborted before it began fails', async () => {
    const { port } = await listen(device);
    const client = dial(device, port, { signal: AbortSignal.abort() });
    expect(await rejection(client.established)).toMatchObject({ name: 'AbortError' });
  });

  test('whose client has given up when it is accepted comes to its end, and harms nothing', async () => {
    const { server, port } = await listen(device);
    const asked = nextRequest(server);
    const client = dial(device, port);
    const request = await asked;
    client.destroy();
    await client.closed;
    // The client's kernel may not have given up yet, so this end may be established for a moment.
    await request.accept({ timeout: 500 }).closed.catch(() => {});
    const next = nextRequest(server).then((again) => again.accept());
    await dial(device, port).established;
    await (await next).established;
  });

  test('runs its listeners in the context that it was made in', async () => {
    const storage = new AsyncLocalStorage<string>();
    const { server, port } = await listen(device);
    const accepted = nextConnection(server);
    const client = storage.run('mine', () => dial(device, port));
    const heard = new Promise((resolve) => client.on('message', () => resolve(storage.getStore())));
    await client.send(Buffer.from('hello'));
    await (await accepted).send(Buffer.from('hello'));
    expect(await heard).toBe('mine');
  });

  test('is told on diagnostics channels', async () => {
    const told: string[] = [];
    for (const name of ['connecting', 'established', 'ready', 'closed', 'step']) {
      const listener = () => void told.push(name);
      subscribe(`rdma:connection:${name}`, listener);
      onTestFinished(() => void unsubscribe(`rdma:connection:${name}`, listener));
    }
    const { client, accepted } = await openPair(device);
    await client.close();
    await accepted.close();
    expect(new Set(told)).toEqual(new Set(['connecting', 'established', 'ready', 'closed', 'step']));
  });

  test('has a protection domain of its own if it asks for one', async () => {
    const { client, accepted } = await openPair(device, { protectionDomain: 'own', peerToPeer: true });
    const [own, shared] = await Promise.all([client.allocate(4096), accepted.allocate(4096)]);
    expect(own.protectionDomain).not.toBe(shared.protectionDomain);
    await client.send(own.bytes);
    expect((await accepted.receive())!.length).toBe(4096);
  });
});

describe.each(devices)('a server on %s', (_, device) => {
  test('says where it listens, and only once', async () => {
    const { server, port } = await listen(device);
    expect(server.address()).toEqual({ address: device.address, family: 'IPv4', port });
    expect(await rejection(server.listen())).toMatchObject({ code: 'ERR_RDMA_SERVER_ALREADY_LISTEN' });
    const other = createServer();
    onTestFinished(() => other.close());
    expect(await rejection(other.listen({ host: device.address, port }))).toMatchObject({
      code: 'EADDRINUSE',
    });
    await server.close();
    expect(server.address()).toBe(null);
    expect(await rejection(server.listen())).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });

  test('on every address takes connections of each device', async () => {
    const accepted: Connection[] = [];
    const server = createServer((connection) => accepted.push(connection));
    onTestFinished(() => server.close());
    await server.listen();
    const client = dial(device, server.address()!.port);
    await client.established;
    await client.send(Buffer.from('x'));
    await client.ready;
    expect(client.state).toBe('established');
  });

  test('that closes rejects what was not answered and closes what it accepted', async () => {
    const { server, port } = await listen(device);
    const client = dial(device, port, { peerToPeer: true });
    const first = nextRequest(server);
    const accepted = (await first).accept();
    await Promise.all([client.ready, accepted.ready]);
    const second = nextRequest(server);
    const waiting = dial(device, port);
    await second;
    const refused = rejection(waiting.established);
    await server.close();
    expect(await refused).toMatchObject({ code: expect.stringMatching(/REJECTED|ECONN/) });
    await client.closed;
    expect(accepted.state).toBe('closed');
    expect(server.connections).toBe(0);
  });
});
