import { describe, expect, onTestFinished, test } from 'vitest';
import { dial, listen, nextConnection, openPair, rejection, take } from '../support/connection-pair.js';
import { devices, rxe, siw } from '../support/devices.js';

/** Collects the codes of warnings until the test is over. */
function warnings(): { codes: string[]; next: () => Promise<string> } {
  const codes: string[] = [];
  let waiting = (_code: string) => {};
  const listener = (warning: Error & { code?: string }) => {
    codes.push(warning.code ?? warning.name);
    waiting(codes.at(-1)!);
  };
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  return { codes, next: () => new Promise((resolve) => (waiting = resolve)) };
}

describe.each(devices)('peer-to-peer over %s', (_, device) => {
  test.each(['read', 'write', 'send'] as const)('with rtr %s lets both sides speak first', async (rtr) => {
    const { server, port } = await listen(device);
    const request = new Promise<string[]>((resolve) => {
      server.once('request', async (asked) => {
        const accepted = asked.accept();
        // The moment that `rdma_accept()` has returned: too early without the handshake.
        for (let i = 0; i < 10; i++) void accepted.send(Buffer.from(`passive ${i}`));
        resolve(await take(accepted, 10));
        expect(accepted.peerToPeer).toMatchObject({ requested: true, negotiated: true, rtr });
      });
    });
    const client = dial(device, port, { peerToPeer: { rtr, negotiate: 'require' } });
    for (let i = 0; i < 10; i++) void client.send(Buffer.from(`active ${i}`));
    const numbers = Array.from({ length: 10 }, (_, i) => i);
    expect(await take(client, 10)).toEqual(numbers.map((i) => `passive ${i}`));
    expect(await request).toEqual(numbers.map((i) => `active ${i}`));
    expect(client.peerToPeer).toMatchObject({ requested: true, negotiated: true, rtr });
    const { times } = client.peerToPeer;
    if (rtr === 'read') expect(times.released).toBe(times.readCompleted);
    else expect(times.released).toBe(times.established);
  });

  test('tells that it is established before it tells that sends flow', async () => {
    const { server, port } = await listen(device);
    const order: string[] = [];
    const passive = new Promise<void>((resolve) => {
      server.on('request', (request) => {
        const accepted = request.accept();
        accepted.on('established', () => order.push('passive established'));
        accepted.on('ready', () => {
          order.push('passive ready');
          resolve();
        });
      });
    });
    const client = dial(device, port, { peerToPeer: true });
    client.on('established', () => order.push('active established'));
    client.on('ready', () => order.push('active ready'));
    await Promise.all([client.ready, passive]);
    for (const side of ['active', 'passive']) {
      expect(order.filter((step) => step.startsWith(side))).toEqual([`${side} established`, `${side} ready`]);
    }
  });

  test('lets requests that were made while it was established follow in order', async () => {
    const { server, port } = await listen(device);
    const accepted = nextConnection(server);
    const client = dial(device, port, { peerToPeer: true });
    void client.send(Buffer.from('1'));
    client.on('established', () => void client.send(Buffer.from('2')));
    client.on('ready', () => void client.send(Buffer.from('3')));
    expect(await take(await accepted, 3)).toEqual(['1', '2', '3']);
  });

  test('is insisted on by a server that wants no other clients', async () => {
    const { port } = await listen(device, { peerToPeer: 'require' });
    await dial(device, port, { peerToPeer: true }).ready;
    const plain = dial(device, port);
    expect(await rejection(plain.established)).toMatchObject({ code: 'ERR_RDMA_REJECTED' });
    const asking = dial(device, port, { flowControl: true });
    expect(await rejection(asking.established)).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' });
  });

  test('fails with a server that declines it if it is required, and the sends that waited with it', async () => {
    const { port } = await listen(device, { peerToPeer: false });
    const client = dial(device, port, { peerToPeer: { negotiate: 'require' } });
    const queued = rejection(client.send(Buffer.from('lost')));
    const error = await rejection(client.ready);
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' });
    expect(await queued).toBe(error);
  });

  test.each(['prefer', 'off'] as const)(
    'under %s carries on with a server that takes no part',
    async (negotiate) => {
      const { server, port } = await listen(device, { peerToPeer: false, flowControl: false });
      const accepted = nextConnection(server);
      const client = dial(device, port, { peerToPeer: { negotiate } });
      await client.send(Buffer.from('hello'));
      expect(client.peerToPeer).toMatchObject({ requested: true, negotiated: false, rtr: 'read' });
      expect(await take(await accepted, 1)).toEqual(['hello']);
      await (await accepted).send(Buffer.from('hello yourself'));
      expect(await take(client, 1)).toEqual(['hello yourself']);
    },
  );

  test('works without credits', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true, flowControl: false });
    await Promise.all([client.send(Buffer.from('a')), accepted.send(Buffer.from('b'))]);
    expect([await take(accepted, 1), await take(client, 1)]).toEqual([['a'], ['b']]);
  });

  test('leaves a connection without it alone: no request of the handshake, no private data', async () => {
    const { client, accepted } = await openPair(device);
    expect(client.peerToPeer).toMatchObject({
      requested: false,
      negotiated: false,
      rtr: null,
      kicked: false,
    });
    expect(Object.keys(client.peerToPeer.times).sort()).toEqual(['connecting', 'established', 'released']);
    expect([...accepted.privateData!].every((byte) => byte === 0)).toBe(true);
  });
});

describe('an accepted connection without peer-to-peer', () => {
  test('holds its sends on iWARP until the first message, and says so after a second', async () => {
    const warned = warnings();
    const { client, accepted } = await openPair(siw);
    const sent = accepted.send(Buffer.from('held'));
    expect(await warned.next()).toBe('RDMA_SENDS_HELD');
    expect(accepted.writableLength).toBe(4);
    await client.send(Buffer.from('first'));
    await sent;
    expect(await take(client, 1)).toEqual(['held']);
  });

  test('speaks first on iWARP when the program takes the responsibility', async () => {
    const { client, accepted } = await openPair(siw);
    const sent = accepted.send(Buffer.from('released'));
    accepted.releaseSends();
    await sent;
    expect(await take(client, 1)).toEqual(['released']);
  });

  test('speaks first on RoCE, which demands nothing', async () => {
    const { client, accepted } = await openPair(rxe);
    await accepted.send(Buffer.from('at once'));
    expect(await take(client, 1)).toEqual(['at once']);
  });

  test('rejects what was held when the client goes without a word', async () => {
    const { client, accepted } = await openPair(siw);
    const held = rejection(accepted.send(Buffer.from('held')));
    await client.close();
    expect(await held).toMatchObject({ code: 'ECONNRESET' });
    await accepted.closed;
  });
});
