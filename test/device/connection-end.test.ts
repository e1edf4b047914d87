import { fork, spawn } from 'node:child_process';
import { createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { useBinding } from '#lib/binding/addon.js';
import { dial, listen, nextConnection, once, openPair, rejection, take } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';

const numbered = (count: number) => Array.from({ length: count }, (_, i) => String(i));

describe.each(devices)('the end of a connection over %s', (_, device) => {
  test.each([
    ['plain', {}],
    ['negotiated', { peerToPeer: true }],
  ])('by close() is orderly at both ends when it is %s', async (_, options) => {
    const { client, accepted } = await openPair(device, options);
    await client.ready;
    const ends = [client.receive(), accepted.receive()];
    await Promise.all([client.close(), accepted.closed]);
    expect(await Promise.all(ends)).toEqual([null, null]);
    await Promise.all([client.closed, client.close(), client.close()]);
    expect([client.state, accepted.state]).toEqual(['closed', 'closed']);
    expect(await rejection(client.send(Buffer.from('late')))).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });

  test('is told once, by an event as well', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    let closes = 0;
    client.on('close', () => closes++);
    await Promise.all([client.close(), accepted.close()]);
    client.destroy(new Error('late'));
    await client.close();
    expect(closes).toBe(1);
  });

  test('waits until all that was sent has arrived, whatever the reader does', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 2 });
    const sent = numbered(50).map((text) => client.send(Buffer.from(text)));
    const closed = client.close();
    expect(await rejection(client.send(Buffer.from('late')))).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(await take(accepted, 51)).toEqual(numbered(50));
    await Promise.all([...sent, closed]);
  });

  test('lets what the other side has sent arrive too', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { sendDepth: 4 });
    await accepted.ready;
    const sent = numbered(200).map((text) => accepted.send(Buffer.from(text)));
    await client.close();
    await Promise.all(sent);
    expect(await take(client, 201)).toEqual(numbered(200));
  });

  test('from both sides at once is orderly', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    await Promise.all([client.ready, accepted.ready]);
    await Promise.all([client.close(), accepted.close(), client.closed, accepted.closed]);
    expect(await client.receive()).toBe(null);
  });

  test('in order gives up on a peer that takes nothing', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 1 });
    await client.ready;
    const sent = numbered(3).map((text) => client.send(Buffer.from(text)));
    const settled = Promise.allSettled(sent);
    await sent[0];
    await client.close({ timeout: 50 });
    expect((await settled).at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'ETIMEDOUT' } });
    await rejection(accepted.closed);
  });

  test('refuses what the peer sends while it closes', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    await client.ready;
    void client.close();
    await accepted.receive();
    expect(await rejection(accepted.send(Buffer.from('late')))).toMatchObject({
      code: expect.stringMatching(/^(EPIPE|ERR_RDMA_CLOSED)$/),
    });
    await accepted.closed;
  });

  test('by destroy() rejects all that is outstanding with the one error', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 1 });
    await client.ready;
    const reason = new Error('enough');
    const sent = numbered(5).map((text) => client.send(Buffer.from(text)));
    // The second is under way or waits, as the credit of the first comes back sooner or later.
    sent[1]!.catch(() => {});
    const waiting = [...sent.slice(2), client.receive(), client.closed].map(rejection);
    let emitted: Error | undefined;
    client.on('error', (error) => {
      emitted = error;
    });
    await sent[0];
    const peer = rejection(accepted.closed);
    client.destroy(reason);
    for (const error of await Promise.all(waiting)) expect(error).toBe(reason);
    expect(emitted).toBe(undefined);
    expect(await peer).toMatchObject({ code: 'ECONNRESET' });
  });

  test('is emitted as an error when no promise could carry it', async () => {
    const { client } = await openPair(device, { peerToPeer: true });
    const reason = new Error('enough');
    const error = once(client as never, 'error');
    client.destroy(reason);
    expect(await error).toEqual([reason]);
  });

  test('by its signal is an AbortError', async () => {
    const controller = new AbortController();
    const { client } = await openPair(device, { signal: controller.signal });
    const receiving = rejection(client.receive());
    controller.abort();
    expect(await receiving).toMatchObject({ name: 'AbortError' });
    expect(await rejection(client.closed)).toBe(await receiving);
  });

  test('comes when a request on the wire is called off', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(2 ** 20, { access: ['remote-read'] });
    const sink = await client.allocate(2 ** 20, { access: ['read-sink'] });
    await client.ready;
    const controller = new AbortController();
    const reading = rejection(client.read(region.remote(), sink.bytes, { signal: controller.signal }));
    controller.abort();
    expect(await reading).toMatchObject({ name: 'AbortError' });
    expect(await rejection(client.closed)).toBe(await reading);
  });

  test('comes by itself when there is no traffic', async () => {
    const { client, accepted } = await openPair(device, {
      peerToPeer: true,
      idleTimeout: 100,
      keepAlive: { interval: 10 },
    });
    await Promise.all([client.closed, accepted.closed]);
    expect(await accepted.receive()).toBe(null);
  });

  test('does not come while there are keepalives only for as long as the peer lives', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true, keepAlive: { interval: 5 } });
    await client.ready;
    for (let i = 0; i < 3; i++)
      expect(await rejection(client.receive({ timeout: 20 }))).toMatchObject({ code: 'ETIMEDOUT' });
    await client.send(Buffer.from('still here'));
    expect(await take(accepted, 1)).toEqual(['still here']);
  });

  test.each([
    ['established', { peerToPeer: false }],
    ['ready', { peerToPeer: true }],
  ])('by the death of the peer process settles everything once %s', async (_, options) => {
    const { server, port } = await listen(device);
    const script = `
      import { connect } from 'node-rdma';
      const connection = connect(${JSON.stringify({ host: device.address, port, ...options })});
      await connection.ready;
      await connection.send(Buffer.from('alive'));
      process.send('ready');
    `;
    const accepted = nextConnection(server);
    const child = fork('data:text/javascript,', { execArgv: ['--input-type=module', '--eval', script] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child as never, 'message');
    const connection = await accepted;
    expect(await take(connection, 1)).toEqual(['alive']);
    const outstanding = [
      connection.receive(),
      connection.closed,
      connection.send(Buffer.alloc(1)).then(() => 'sent'),
    ];
    child.kill('SIGKILL');
    const settled = await Promise.allSettled(outstanding);
    if (options.peerToPeer) {
      expect(settled[0]).toMatchObject({ status: 'rejected', reason: { code: 'ECONNRESET' } });
    } else {
      expect(settled[0]).toEqual({ status: 'fulfilled', value: null });
    }
  });

  test('leaves no native object behind', async () => {
    // Other tests of this process may have left something to the garbage collector.
    const before = useBinding().native.objectCounts();
    const server = createServer();
    await server.listen({ host: device.address });
    const accepted = nextConnection(server);
    const client = dial(device, server.address()!.port, { peerToPeer: true });
    await client.ready;
    await client.allocate(4096);
    await (await accepted).register(new ArrayBuffer(4096));
    await client.close();
    await server.close();
    // What connections share is closed behind the last of them. Devices are left to the garbage collector.
    for (;;) {
      const { Device: _, ...counts } = useBinding().native.objectCounts();
      if (Object.entries(counts).every(([kind, count]) => count <= before[kind]!)) break;
      await new Promise(setImmediate);
    }
  });
});

describe.each(devices)('a process with connections over %s', (_, device) => {
  const run = (body: string) =>
    new Promise<{ code: number | null; output: string }>((resolve) => {
      const script = `
        import { connect, createServer } from 'node-rdma';
        const host = ${JSON.stringify(device.address)};
        const server = createServer();
        await server.listen({ host });
        const port = server.address().port;
        ${body}
      `;
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      let output = '';
      child.stdout.on('data', (text) => {
        output += text;
      });
      child.stderr.on('data', (text) => {
        output += text;
      });
      child.on('close', (code) => resolve({ code, output }));
    });

  test('exits by itself when they are closed', async () => {
    const result = await run(`
      const client = connect({ host, port, peerToPeer: true });
      await client.ready;
      await client.close();
      await server.close();
    `);
    expect(result).toEqual({ code: 0, output: '' });
  });

  test('exits by itself when all of them are unreferenced', async () => {
    const result = await run(`
      server.on('connection', (connection) => connection.unref());
      const client = connect({ host, port, peerToPeer: true });
      await client.ready;
      client.unref();
      server.unref();
    `);
    expect(result).toEqual({ code: 0, output: '' });
  });

  test('dies of an error that nobody listens to', async () => {
    // The server's end, in the same process, may see the reset first, and must not be what it dies of.
    const result = await run(`
      server.on('connection', (connection) => connection.on('error', () => {}));
      const client = connect({ host, port, peerToPeer: true });
      await client.ready;
      client.destroy(new Error('nobody listens'));
    `);
    expect(result.code).not.toBe(0);
    expect(result.output).toContain('nobody listens');
  });

  test('has no unhandled rejection of promises that it did not ask for', async () => {
    const result = await run(`
      await server.close();
      const client = connect({ host, port });
      client.on('error', (error) => console.log(error.code));
    `);
    expect(result).toEqual({ code: 0, output: 'ECONNREFUSED\n' });
  });
});
