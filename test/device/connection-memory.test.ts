import { RemoteMemory } from 'node-rdma';
import { describe, expect, test } from 'vitest';
import { openPair, rejection } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';

describe.each(devices)('memory over %s', (_, device) => {
  test('of the peer is written and read by a descriptor that a message carries', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(10_000, { access: ['remote-read', 'remote-write'] });
    await accepted.send(region.remote().toBytes());
    const remote = RemoteMemory.fromBytes((await client.receive())!);
    expect(remote.length).toBe(10_000);

    await client.write(remote.slice(100), Buffer.from('from afar'));
    await client.send(Buffer.from('written'));
    await accepted.receive();
    expect(Buffer.from(region.bytes).toString('latin1', 100, 109)).toBe('from afar');
    region.bytes.set(Buffer.from('FROM'), 100);
    expect((await client.read(remote.slice(100, 9))).toString()).toBe('FROM afar');
    expect((await client.read(remote)).length).toBe(10_000);
    expect((await client.read(remote, 0)).length).toBe(0);
    await client.write(remote, new Uint8Array(0));
    const json = RemoteMemory.fromJSON(JSON.parse(JSON.stringify(remote)));
    expect((await client.read(json.slice(104), 5)).toString()).toBe(' afar');
  });

  test('is read into a region that is a sink', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const source = await accepted.allocate(2 ** 21, { access: ['remote-read'] });
    source.bytes.fill(7);
    const sink = await client.allocate(2 ** 21, { access: ['read-sink'] });
    const part = sink.bytes.subarray(4096);
    expect(await client.read(source.remote(0, part.length), part)).toBe(part);
    expect(sink.bytes.subarray(0, 4096).every((byte) => byte === 0)).toBe(true);
    expect(part.every((byte) => byte === 7)).toBe(true);
    expect(client.bytesRead).toBe(part.length);
  });

  test('that a request of the same turn uses is busy, and stays open', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const source = await accepted.allocate(4096, { access: ['remote-read'] });
    source.bytes.fill(7);
    const sink = await client.allocate(4096, { access: ['read-sink'] });
    await client.ready;
    const reading = client.read(source.remote(), sink.bytes);
    expect(await rejection(sink.close())).toMatchObject({ code: 'EBUSY' });
    await reading;
    expect(sink.bytes.every((byte) => byte === 7)).toBe(true);
    await sink.close();
  });

  test('that is no sink, or not registered, is refused before the wire', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const source = await accepted.allocate(4096, { access: ['remote-read'] });
    const region = await client.allocate(4096);
    for (const into of [region.bytes, new Uint8Array(4096)]) {
      const error = await rejection(client.read(source.remote(), into));
      expect(error).toMatchObject({ code: 'ERR_RDMA_NOT_A_READ_SINK' });
    }
    expect((await client.read(source.remote())).length).toBe(4096);
  });

  test('beyond the descriptor is refused before the wire', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(100, { access: ['remote-read', 'remote-write'] });
    const remote = region.remote();
    expect(await rejection(client.write(remote, Buffer.alloc(101)))).toMatchObject({
      code: 'ERR_OUT_OF_RANGE',
    });
    expect(await rejection(client.read(remote, 101))).toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    expect(() => remote.slice(101)).toThrow(RangeError);
    expect((await client.read(remote)).length).toBe(100);
  });

  test('of a region is lent to a send until its promise settles', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await client.allocate(8192);
    region.bytes.fill(9);
    const sent = client.send(region.bytes.subarray(1000, 6000));
    const message = await accepted.receive();
    await sent;
    expect(message!.length).toBe(5000);
    expect(message!.every((byte) => byte === 9)).toBe(true);
    expect(region.inFlight).toBe(0);
    await region.close();
  });

  test('of a region that was closed while its send waited is refused before the wire', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 1 });
    const region = await client.allocate(8192);
    const first = client.send(Buffer.from('1'));
    const second = rejection(client.send(region.bytes));
    const third = client.send(Buffer.from('3'));
    await first;
    await region.close();
    expect((await accepted.receive())!.toString()).toBe('1');
    expect(await second).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect((await accepted.receive())!.toString()).toBe('3');
    await third;
  });

  test('that exists already can be registered in place', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const shared = new SharedArrayBuffer(65536);
    const region = await accepted.register(shared, { access: ['remote-write'] });
    await client.write(region.remote(), Buffer.alloc(5000, 3));
    await client.send(Buffer.from('done'));
    await accepted.receive();
    expect(new Uint8Array(shared, 0, 5000).every((byte) => byte === 3)).toBe(true);
  });

  // By a Write: siw checks no access of what is read (`siw_check_sgl_tx()` is called without permissions).
  test('without access granted ends the connection of who reaches for it, at both ends', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(4096);
    const ends = [client, accepted].map((end) => rejection(end.closed));
    // On iWARP a Write completes before the peer has seen it.
    const written = client.write(region.remote(), Buffer.alloc(10)).catch((error: Error) => error);
    const [error] = await Promise.all(ends);
    expect(error).toMatchObject({ code: device.iwarp ? 'ECONNRESET' : 'ERR_RDMA_WC_REM_ACCESS_ERR' });
    if (!device.iwarp) expect(await written).toBe(error);
    expect(await rejection(client.send(Buffer.from('late')))).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(region.bytes.every((byte) => byte === 0)).toBe(true);
  });

  test('can be reached in 40 requests at once, in the order of their calls', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(40 * 256, { access: ['remote-read', 'remote-write'] });
    const reads = Array.from({ length: 40 }, (_, i) => {
      const part = region.remote(i * 256, 256);
      void client.write(part, Buffer.alloc(256, i + 1));
      return client.read(part);
    });
    for (const [i, bytes] of (await Promise.all(reads)).entries()) {
      expect(bytes.every((byte) => byte === i + 1)).toBe(true);
    }
  });

  test('wants arguments of the right types', async () => {
    const { client } = await openPair(device, { peerToPeer: true });
    const read = client.read.bind(client) as (...values: unknown[]) => Promise<unknown>;
    const write = client.write.bind(client) as (...values: unknown[]) => Promise<unknown>;
    const remote = new RemoteMemory(0n, 1, 10);
    for (const value of [undefined, null, 5, 'x', {}, []]) {
      expect(await rejection(read(value))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      expect(await rejection(write(value, Buffer.alloc(1)))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      if (value !== undefined && value !== 5) {
        expect(await rejection(read(remote, value))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      }
      expect(await rejection(write(remote, value))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    }
  });
});
