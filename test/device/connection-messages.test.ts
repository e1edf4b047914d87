import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { once, openPair, rejection, take } from '../support/connection-pair.js';
import { devices, rxe, siw } from '../support/devices.js';

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const numbered = (count: number, prefix = '') => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

describe.each(devices)('messages over %s', (_, device) => {
  test.each([
    ['plain', {}],
    ['with credits', { flowControl: true }],
    ['peer-to-peer', { peerToPeer: true }],
  ])('arrive once, whole and in order on a %s connection', async (_, options) => {
    const { client, accepted } = await openPair(device, options);
    const sent = numbered(40).map((text) => client.send(Buffer.from(text)));
    expect(await take(accepted, 40)).toEqual(numbered(40));
    const answered = numbered(40, 'answer ').map((text) => accepted.send(Buffer.from(text)));
    expect(await take(client, 40)).toEqual(numbered(40, 'answer '));
    await Promise.all([...sent, ...answered]);
  });

  test('of every size from none to the largest arrive as they were', async () => {
    const { client, accepted } = await openPair(
      device,
      { peerToPeer: true, maxMessageSize: 65536 },
      { maxMessageSize: 65536 },
    );
    const sizes = [0, 1, 3, 4, 5, 63, 64, 65, 255, 256, 4092, 8192, 8193, 65535, 65536];
    for (const size of sizes) {
      const message = Buffer.alloc(size, `size ${size} `);
      const [received] = await Promise.all([accepted.receive(), client.send(message)]);
      expect(digest(received!)).toBe(digest(message));
    }
  });

  test('larger than the largest are refused before the wire, and the connection goes on', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true, maxMessageSize: 1000 });
    expect(client.maxMessageSize).toBe(1000);
    expect(accepted.maxMessageSize).toBe(1000);
    expect(await rejection(client.send(Buffer.alloc(1001)))).toMatchObject({
      code: 'ERR_RDMA_MESSAGE_TOO_LARGE',
    });
    await client.ready;
    await client.send(Buffer.from('fits'));
    expect(await take(accepted, 1)).toEqual(['fits']);
  });

  test('that wait are refused when the peer turns out to take less', async () => {
    const { client, accepted } = await openPair(device, { flowControl: true }, { maxMessageSize: 100 });
    expect(client.maxMessageSize).toBe(100);
    expect(await rejection(client.send(Buffer.alloc(101)))).toMatchObject({
      code: 'ERR_RDMA_MESSAGE_TOO_LARGE',
    });
    await client.send(Buffer.alloc(100));
    expect((await accepted.receive())!.length).toBe(100);
  });

  test('are copied at the call', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const data = Buffer.from('before');
    const sent = client.send(data);
    data.write('after!');
    await sent;
    expect(await take(accepted, 1)).toEqual(['before']);
  });

  test('of a slow reader with credits hold the sender back, and all of them arrive', async () => {
    const options = { peerToPeer: true, receiveDepth: 4, highWaterMark: 2 ** 24 };
    const { client, accepted } = await openPair(device, options, { receiveDepth: 4 });
    const sent = numbered(300).map((text) => client.send(Buffer.from(text)));
    await sent[3];
    expect(client.writableLength).toBeGreaterThan(0);
    for (const text of numbered(300)) expect((await accepted.receive())!.toString()).toBe(text);
    await Promise.all(sent);
  });

  test('cross each other through the smallest of windows', async () => {
    const small = { receiveDepth: 1, sendDepth: 1 };
    const { client, accepted } = await openPair(device, { peerToPeer: true, ...small }, small);
    const sent = [client, accepted].flatMap((end) =>
      numbered(100).map((text) => end.send(Buffer.from(text))),
    );
    const received = await Promise.all([take(client, 100), take(accepted, 100)]);
    expect(received).toEqual([numbered(100), numbered(100)]);
    await Promise.all(sent);
  });

  test('are emitted to a listener, those first that were queued before it came', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    await Promise.all(numbered(5).map((text) => client.send(Buffer.from(text))));
    expect(await take(accepted, 1)).toEqual(['0']);
    const heard: string[] = [];
    const all = new Promise<void>((resolve) => {
      accepted.on('message', (message) => heard.push(message.toString()) === 9 && resolve());
    });
    await Promise.all(numbered(5, 'more ').map((text) => client.send(Buffer.from(text))));
    await all;
    expect(heard).toEqual([...numbered(5).slice(1), ...numbered(5, 'more ')]);
  });

  test('are iterated to the end, with what is queued when the peer closes', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    for (const text of numbered(20)) void client.send(Buffer.from(text));
    await client.close();
    await accepted.closed;
    const heard: string[] = [];
    for await (const message of accepted) heard.push(message.toString());
    expect(heard).toEqual(numbered(20));
    expect(await accepted.receive()).toBe(null);
  });

  test('are lent where they lie; what is not released holds its credit', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 2 });
    const sent = numbered(3).map((text) => client.send(Buffer.from(text)));
    const leases = accepted.leases();
    const first = (await leases.next()).value!;
    const second = (await leases.next()).value!;
    expect([first.data.toString(), second.data.toString()]).toEqual(['0', '1']);
    const third = leases.next();
    await Promise.all(sent.slice(0, 2));
    expect(client.writableLength).toBe(1);
    second.release();
    second.release();
    expect((await third).value!.data.toString()).toBe('2');
    await sent[2];
    expect(first.data.toString()).toBe('0');
  });

  test('wait for their turn up to the high-water mark, and are refused beyond', async () => {
    const options = { peerToPeer: true, highWaterMark: 1000, sendDepth: 1 };
    const { client, accepted } = await openPair(device, options);
    await client.ready;
    const data = Buffer.alloc(400);
    let taken = 0;
    while (client.trySend(data)) taken++;
    expect(client.writableLength).toBeLessThanOrEqual(1000);
    expect(await rejection(client.send(data))).toMatchObject({ code: 'ERR_RDMA_QUEUE_FULL' });
    await once(client, 'drain');
    expect(client.writableLength).toBe(0);
    expect(client.trySend(data)).toBe(true);
    expect((await take(accepted, taken + 1)).length).toBe(taken + 1);
  });

  test('can be called off while they wait, and leave the others in order', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 1 });
    const controller = new AbortController();
    await client.ready;
    const sent = numbered(3).map((text, i) =>
      client.send(Buffer.from(text), i === 1 ? { signal: controller.signal } : undefined),
    );
    controller.abort();
    expect(await rejection(sent[1]!)).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    expect(await take(accepted, 2)).toEqual(['0', '2']);
  });

  test('that nobody sends can be waited for with a limit, and the connection goes on', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    expect(await rejection(accepted.receive({ timeout: 5 }))).toMatchObject({ code: 'ETIMEDOUT' });
    const signal = AbortSignal.abort('enough');
    expect(await rejection(accepted.receive({ signal }))).toMatchObject({
      name: 'AbortError',
      cause: 'enough',
    });
    await client.send(Buffer.from('on'));
    expect(await take(accepted, 1)).toEqual(['on']);
  });

  test('are counted in bytes at both ends', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    await client.send(Buffer.alloc(1234));
    await accepted.receive();
    expect(client.bytesWritten).toBe(1234);
    expect(accepted.bytesRead).toBe(1234);
  });

  test('of the wrong type are refused', async () => {
    const { client } = await openPair(device, { peerToPeer: true });
    for (const value of [undefined, null, 'text', 5, [], {}, new ArrayBuffer(4)]) {
      const send = client.send.bind(client) as (data: unknown) => Promise<void>;
      expect(await rejection(send(value))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      expect(() => client.trySend(value as never)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
      );
    }
  });
});

describe('a plain connection whose reader lags', () => {
  test('keeps the messages on iWARP, which holds no sender back', async () => {
    const { client, accepted } = await openPair(siw, {}, { receiveDepth: 8 });
    for (const text of numbered(100)) await client.send(Buffer.from(text));
    await client.close();
    expect(await take(accepted, 101)).toEqual(numbered(100));
  });

  test('ends on iWARP when it has kept as much as it may; what was kept can be read', async () => {
    const { client, accepted } = await openPair(siw, {}, { receiveDepth: 8, maxQueuedBytes: 1000 });
    const ended = rejection(accepted.closed);
    for (let i = 0; i < 11; i++) await client.send(Buffer.alloc(100));
    expect(await ended).toMatchObject({ code: 'ERR_RDMA_RECEIVE_OVERFLOW' });
    await client.closed;
    for (let i = 0; i < 10; i++) expect((await accepted.receive())!.length).toBe(100);
  });

  test('holds the sender back on RoCE, and takes all in the end', async () => {
    const { client, accepted } = await openPair(rxe, {}, { receiveDepth: 8 });
    const sent = numbered(100).map((text) => client.send(Buffer.from(text)));
    await sent[7];
    expect(await take(accepted, 100)).toEqual(numbered(100));
    await Promise.all(sent);
  });
});
