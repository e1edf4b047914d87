import { type Connection, RemoteMemory } from 'node-rdma';
import { describe, expect, test } from 'vitest';
import { rejection } from '../support/connection-pair.js';
import type { ReplyOptions } from '../support/mpa/peer.js';
import { answer, dialPeer, privateDataOf, text } from '../support/wire-peer.js';

const accepting: ReplyOptions = { privateData: privateDataOf(answer()) };
/** Milliseconds that the reply is withheld where no kick is wanted: it comes after twice the time of connecting. */
const longConnecting = 500;
/** A timer of Node's can be this much early, in milliseconds. */
const clockError = 10;

/** Milliseconds from the Read to the kick, by the clock of the side that posted both. */
function kickDelay({ peerToPeer }: Connection): number {
  const { readPosted, kickPosted } = peerToPeer.times;
  return kickPosted! - readPosted!;
}

describe('an active side that asks for peer-to-peer, before a responder that agrees', () => {
  test('sends a 0-byte Read Request and GO, then at most one kick, and no message before the Response', async () => {
    const { client, peer, header } = await dialPeer({ peerToPeer: true });
    const sent = ['first', 'second'].map((message) => client.send(Buffer.from(message)));
    expect(header).toMatchObject({ peerToPeer: true, readRtr: true });
    await peer.sendReply(accepting);
    const read = await peer.expectReadRequest0();
    expect((await peer.expectSend()).payload).toHaveLength(0);
    await peer.expectWrite0();
    expect(kickDelay(client)).toBeGreaterThan(150 - clockError);
    await peer.expectSilence(400);
    expect(client.peerToPeer).toMatchObject({ negotiated: true, rtr: 'read', kicked: true });
    await peer.sendReadResponse0(read);
    expect(text((await peer.expectSend()).payload)).toBe('first');
    expect(text((await peer.expectSend()).payload)).toBe('second');
    await Promise.all([...sent, client.ready]);
  });

  test('holds Writes and Reads back as well', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    const remote = new RemoteMemory(0x1000n, 0x77, 8);
    const written = client.write(remote, Buffer.from('written!'));
    client.read(remote).catch(() => {});
    await peer.sendReply(accepting);
    const read = await peer.expectReadRequest0();
    await peer.expectSend();
    await peer.expectWrite0();
    await peer.sendReadResponse0(read);
    expect(await peer.nextFpdu()).toMatchObject({ opcode: 'write', stag: 0x77, taggedOffset: 0x1000n });
    expect(await peer.nextFpdu()).toMatchObject({ opcode: 'read-request', sourceStag: 0x77, size: 8 });
    await written;
  });

  test('kicks no more once the Response has come', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    await peer.expectSilence(longConnecting);
    await peer.sendReply(accepting);
    await peer.sendReadResponse0(await peer.expectReadRequest0());
    await peer.expectSend();
    await client.ready;
    await peer.expectSilence(400);
    expect(client.peerToPeer.kicked).toBe(false);
  });

  test('fails in time when the Response does not come, and sends nothing of what was queued', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: { timeout: 300 } });
    const queued = rejection(client.send(Buffer.from('never')));
    await peer.sendReply(accepting);
    await peer.expectReadRequest0();
    await peer.expectSend();
    await peer.expectWrite0();
    await peer.expectEnd();
    const error = await queued;
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_TIMEOUT' });
    expect(await rejection(client.ready)).toBe(error);
    expect(await rejection(client.closed)).toBe(error);
  });

  test('does not take a message for the Response', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    const sent = client.send(Buffer.from('late'));
    await peer.expectSilence(longConnecting);
    await peer.sendReply(accepting);
    const read = await peer.expectReadRequest0();
    await peer.expectSend();
    await peer.send(Buffer.from('early'));
    expect((await client.receive())!.toString()).toBe('early');
    await peer.expectSilence(300);
    await peer.sendReadResponse0(read);
    expect(text((await peer.expectSend()).payload)).toBe('late');
    await sent;
  });

  test("with rtr 'send' sends GO and its messages at once, and kicks once", async () => {
    const { client, peer, header } = await dialPeer({ peerToPeer: { rtr: 'send' } });
    const sent = client.send(Buffer.from('at once'));
    expect(header).toMatchObject({ readRtr: false, writeRtr: false, sendRtr: true });
    await peer.sendReply({ privateData: privateDataOf(answer({ readRtr: false, sendRtr: true })) });
    expect((await peer.expectSend()).payload).toHaveLength(0);
    expect(text((await peer.expectSend()).payload)).toBe('at once');
    await Promise.all([sent, client.ready]);
    await peer.expectWrite0();
    await peer.expectSilence(300);
  });

  test("with rtr 'write' sends a 0-byte Write, GO and its messages at once, and kicks once", async () => {
    const { client, peer, header } = await dialPeer({ peerToPeer: { rtr: 'write' } });
    const sent = client.send(Buffer.from('at once'));
    expect(header).toMatchObject({ readRtr: false, writeRtr: true, sendRtr: false });
    await peer.sendReply({ privateData: privateDataOf(answer({ readRtr: false, writeRtr: true })) });
    await peer.expectWrite0();
    expect((await peer.expectSend()).payload).toHaveLength(0);
    expect(text((await peer.expectSend()).payload)).toBe('at once');
    await Promise.all([sent, client.ready]);
    await peer.expectWrite0();
    await peer.expectSilence(300);
  });

  test.each(['send', 'write'] as const)("with rtr '%s' does not kick a peer that has spoken", async (rtr) => {
    const { client, peer } = await dialPeer({ peerToPeer: { rtr } });
    await peer.expectSilence(longConnecting);
    await peer.sendReply({ privateData: privateDataOf(answer({ readRtr: false, [`${rtr}Rtr`]: true })) });
    if (rtr === 'write') await peer.expectWrite0();
    await peer.expectSend();
    await peer.send(Buffer.from('spoken'));
    expect((await client.receive())!.toString()).toBe('spoken');
    await peer.expectSilence(300);
  });

  test.each(['ird', 'ord'] as const)(
    'sends GO alone where the responder has no %s for the Read',
    async (depth) => {
      const { client, peer } = await dialPeer({ peerToPeer: true });
      const sent = client.send(Buffer.from('message'));
      await peer.sendReply({
        privateData: privateDataOf(answer({ readRtr: false, sendRtr: true })),
        enhanced: { [depth]: 0 },
      });
      expect((await peer.expectSend()).payload).toHaveLength(0);
      expect(text((await peer.expectSend()).payload)).toBe('message');
      await sent;
      expect(client.peerToPeer.rtr).toBe('send');
    },
  );

  test('sends no more messages than the responder has receives for, and goes on with every credit', async () => {
    const { client, peer, header } = await dialPeer({ peerToPeer: true });
    const sent = ['1', '2', '3'].map((message) => client.send(Buffer.from(message)));
    expect(header).toMatchObject({ flowControl: true, receiveCredits: 64 });
    await peer.expectSilence(longConnecting);
    await peer.sendReply({ privateData: privateDataOf(answer({ flowControl: true, receiveCredits: 2 })) });
    const read = await peer.expectReadRequest0();
    await peer.expectSend();
    await peer.sendReadResponse0(read);
    for (const message of ['1', '2']) {
      const { payload } = await peer.expectSend();
      expect(payload[0]).toBe(0);
      expect(text(payload.subarray(4))).toBe(message);
    }
    await peer.expectSilence(300);
    await peer.send(Uint8Array.of(1, 0, 0, 1));
    expect(text((await peer.expectSend()).payload.subarray(4))).toBe('3');
    await Promise.all(sent);
  });
});

describe('an active side that asks for peer-to-peer, before a responder that does not answer the header', () => {
  test('sends a 0-byte Read Request and nothing but one kick until the Response', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true, privateData: Buffer.from('mine') });
    const sent = client.send(Buffer.from('after'));
    await peer.sendReply({ privateData: Buffer.from('theirs') });
    const read = await peer.expectReadRequest0();
    await peer.expectWrite0();
    expect(kickDelay(client)).toBeGreaterThan(1000 - clockError);
    await peer.expectSilence(400);
    await peer.sendReadResponse0(read);
    expect(text((await peer.expectSend()).payload)).toBe('after');
    await Promise.all([sent, client.ready]);
    expect(client.privateData!.toString()).toBe('theirs');
    expect(client.peerToPeer).toMatchObject({ requested: true, negotiated: false, rtr: 'read' });
  });

  test('sends no GO when the Response comes at once', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    await peer.sendReply();
    await peer.sendReadResponse0(await peer.expectReadRequest0());
    await client.ready;
    await client.send(Buffer.from('first'));
    expect(text((await peer.expectSend()).payload)).toBe('first');
    await peer.expectSilence(300);
  });

  test("with rtr 'send' sends the Read as well: such a peer would take GO for a message", async () => {
    const { client, peer } = await dialPeer({ peerToPeer: { rtr: 'send' } });
    const sent = client.send(Buffer.from('after'));
    await peer.sendReply();
    const read = await peer.expectReadRequest0();
    await peer.expectSilence(300);
    await peer.sendReadResponse0(read);
    expect(text((await peer.expectSend()).payload)).toBe('after');
    await sent;
  });

  test("with rtr 'write' sends a 0-byte Write and then its messages", async () => {
    const { client, peer } = await dialPeer({ peerToPeer: { rtr: 'write' } });
    const sent = client.send(Buffer.from('after'));
    await peer.sendReply();
    await peer.expectWrite0();
    expect(text((await peer.expectSend()).payload)).toBe('after');
    await Promise.all([sent, client.ready]);
  });

  test.each(['ird', 'ord'] as const)(
    'sends a 0-byte Write where the responder has no %s for the Read',
    async (depth) => {
      const { client, peer } = await dialPeer({ peerToPeer: true });
      const sent = client.send(Buffer.from('after'));
      await peer.sendReply({ enhanced: { [depth]: 0 } });
      await peer.expectWrite0();
      expect(text((await peer.expectSend()).payload)).toBe('after');
      await sent;
    },
  );

  test("with negotiate 'require' fails and sends no FPDU", async () => {
    const { client, peer } = await dialPeer({ peerToPeer: { negotiate: 'require' } });
    const queued = rejection(client.send(Buffer.from('never')));
    await peer.sendReply();
    await peer.expectEnd();
    const error = await queued;
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' });
    expect(await rejection(client.closed)).toBe(error);
  });

  test("with negotiate 'off' sends the user's private data alone, and the Read", async () => {
    const options = { peerToPeer: { negotiate: 'off' as const }, privateData: Buffer.from('mine') };
    const { client, peer, header, user } = await dialPeer(options);
    const sent = client.send(Buffer.from('after'));
    expect(header).toBe(null);
    expect(user.toString()).toBe('mine');
    // What looks like an answer is none: nothing was asked.
    await peer.sendReply({ privateData: privateDataOf(answer(), 'theirs') });
    const read = await peer.expectReadRequest0();
    await peer.expectSilence(300);
    await peer.sendReadResponse0(read);
    expect(text((await peer.expectSend()).payload)).toBe('after');
    await sent;
    expect(client.privateData).toHaveLength(26);
  });
});

describe('an active side that is rejected', () => {
  test.each([
    ['without a header', null],
    ['with a header', answer({ peerToPeer: false, readRtr: false })],
  ])('%s gets the data of the peer, and sends nothing', async (_, header) => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    const queued = rejection(client.send(Buffer.from('never')));
    await peer.sendReply({ reject: true, privateData: privateDataOf(header, 'not you') });
    await peer.expectEnd();
    const error = await queued;
    expect(error).toMatchObject({ code: 'ERR_RDMA_REJECTED', privateData: Buffer.from('not you') });
    expect(await rejection(client.established)).toBe(error);
  });

  test('by a server that takes peer-to-peer connections only is told so', async () => {
    const { client, peer } = await dialPeer({ flowControl: true });
    const reply = answer({ readRtr: false });
    await peer.sendReply({ reject: true, privateData: privateDataOf(reply) });
    expect(await rejection(client.established)).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' });
    await peer.expectEnd();
  });
});

describe('an active side without the option', () => {
  test('sends its messages at once, and nothing else', async () => {
    const { client, peer, header, user } = await dialPeer();
    const sent = client.send(Buffer.from('at once'));
    expect(header).toBe(null);
    expect(user).toHaveLength(0);
    await peer.sendReply();
    expect(text((await peer.expectSend()).payload)).toBe('at once');
    await sent;
    await peer.expectSilence(300);
  });
});
