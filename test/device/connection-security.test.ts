import { RemoteMemory } from 'node-rdma';
import { describe, expect, test } from 'vitest';
import { dial, listen, nextConnection, openPair, rejection } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';
import { answer, dialPeer, privateDataOf } from '../support/wire-peer.js';

const secret = 'secret';

/** The descriptor of a region that its owner keeps to itself, as one who has guessed its key would make it. */
const guessed = ({ address, rkey, length }: { address: bigint; rkey: number; length: number }) =>
  new RemoteMemory(address, rkey, length);

describe.each(devices)('a peer over %s', (_, device) => {
  test('writes to no region that was not opened for it, and ends its own connection by trying', async () => {
    const { client, accepted, server, port } = await openPair(device, { peerToPeer: true });
    const bystander = dial(device, port, { peerToPeer: true });
    const other = await nextConnection(server);
    for (const access of [[], ['remote-read']] as const) {
      const region = await other.allocate(4096, { access });
      region.bytes.set(Buffer.from(secret));
      const [writer, owner] = access.length === 0 ? [client, accepted] : await another(device, port, server);
      const closed = rejection(writer.closed);
      owner.on('error', () => {});
      writer.write(guessed(region), Buffer.from('broken')).catch(() => {});
      expect(await closed).toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|ERR_RDMA_WC_.*)$/) });
      expect(Buffer.from(region.bytes.subarray(0, 6)).toString()).toBe(secret);
    }
    await bystander.send(Buffer.from('untouched'));
    expect((await other.receive())?.toString()).toBe('untouched');
  });

  test('writes to no byte beyond what it was granted', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const region = await accepted.allocate(8192, { access: ['remote-write'] });
    const { address, rkey } = region;
    const neighbour = await accepted.allocate(4096);
    const closed = rejection(client.closed);
    accepted.on('error', () => {});
    client.write(new RemoteMemory(address + 8190n, rkey, 4), Buffer.from('over')).catch(() => {});
    await closed;
    expect(neighbour.bytes.every((byte) => byte === 0)).toBe(true);
  });

  test('has nothing of a key whose region is closed', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true });
    const buffer = new SharedArrayBuffer(4096);
    const region = await accepted.register(buffer, { access: ['remote-write'] });
    const remote = region.remote();
    await region.close();
    const closed = rejection(client.closed);
    accepted.on('error', () => {});
    client.write(remote, Buffer.from('late')).catch(() => {});
    await closed;
    expect(new Uint8Array(buffer).every((byte) => byte === 0)).toBe(true);
  });

  test('reaches what was opened for another of its domain, and nothing of a domain of its own', async () => {
    const shared = await openPair(device, { peerToPeer: true });
    const own = await openPair(device, { peerToPeer: true }, { protectionDomain: 'own' });
    const region = await shared.accepted.allocate(4096, { access: ['remote-write'] });
    const sibling = await openPair(device, { peerToPeer: true });
    await sibling.client.write(region.remote(), Buffer.from('shared'));
    await sibling.client.send(Buffer.from('done'));
    await sibling.accepted.receive();
    expect(Buffer.from(region.bytes.subarray(0, 6)).toString()).toBe('shared');
    const closed = rejection(own.client.closed);
    own.accepted.on('error', () => {});
    own.client.write(region.remote(), Buffer.from('beyond')).catch(() => {});
    await closed;
    expect(Buffer.from(region.bytes.subarray(0, 6)).toString()).toBe('shared');
  });

  test('is turned away beyond maxConnections', async () => {
    const { server, port } = await listen(device, { maxConnections: 1 });
    const first = dial(device, port, { peerToPeer: true });
    await first.ready;
    const dropped = new Promise((resolve) => server.once('drop', resolve));
    expect((await rejection(dial(device, port).established)).code).toMatch(/^(ERR_RDMA_REJECTED|ECONN.*)$/);
    await dropped;
    expect(server.connections).toBe(1);
  });

  test('takes no more receive memory than its connection was given', async () => {
    const { client, accepted } = await openPair(device, { peerToPeer: true }, { receiveDepth: 4 });
    let settled = 0;
    for (let i = 0; i < 100; i++) {
      client.send(Buffer.alloc(8192)).then(
        () => settled++,
        () => {},
      );
    }
    // Nobody reads: four messages have come, and the others wait where they are sent.
    for (let i = 0; i < 4; i++) await accepted.receive();
    expect(settled).toBeLessThan(12);
    expect(accepted.bytesRead).toBeLessThanOrEqual(12 * 8192);
  });
});

async function another(
  device: (typeof devices)[number][1],
  port: number,
  server: Awaited<ReturnType<typeof listen>>['server'],
) {
  const accepted = nextConnection(server);
  const client = dial(device, port, { peerToPeer: true });
  return [client, await accepted] as const;
}

test('an iWARP peer that is read from learns the key of the sink', async () => {
  const { client, peer } = await dialPeer({ peerToPeer: true });
  await peer.sendReply({ privateData: privateDataOf(answer()) });
  await peer.sendReadResponse0(await peer.expectReadRequest0());
  await peer.expectSend();
  await client.ready;
  const sink = await client.allocate(4096, { access: ['read-sink'] });
  client.read(new RemoteMemory(0x1000n, 0x77, 100), sink.bytes.subarray(0, 100)).catch(() => {});
  const wanted = { opcode: 'read-request', sinkStag: sink.rkey, size: 100 };
  expect(await peer.nextFpdu()).toMatchObject(wanted);
});
