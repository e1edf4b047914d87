import type { Connection } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { rejection } from '../support/connection-pair.js';
import type { RequestOptions } from '../support/mpa/peer.js';
import type { StrictPeer } from '../support/mpa/strict-peer.js';
import { askServer, offer, privateDataOf, reachServer, text } from '../support/wire-peer.js';

/** How long a responder that has something to say is watched for saying it too early, in milliseconds. */
const patience = 400;

const words = ['first', 'second'];

/** Says its words as early as it can, and again when it is told that the connection is established. */
function speakAtOnce(accepted: Connection): void {
  for (const word of words) accepted.send(Buffer.from(word)).catch(() => {});
  accepted.once('established', () => accepted.send(Buffer.from('third')).catch(() => {}));
}

async function expectWords(peer: StrictPeer): Promise<void> {
  for (const word of [...words, 'third']) expect(text((await peer.expectSend()).payload)).toBe(word);
}

describe('a passive side that speaks at once', () => {
  test.each<[string, RequestOptions]>([
    ['plain', {}],
    ['plain request of revision 1', { enhanced: null }],
  ])('sends nothing on a %s connection before the first message, and then everything', async (_, request) => {
    const { peer, accepted, header } = await askServer(request, {}, speakAtOnce);
    expect(header).toBe(null);
    await peer.expectSilence(patience);
    await peer.send(Buffer.from('hello'));
    await expectWords(peer);
    expect((await accepted.receive())!.toString()).toBe('hello');
  });

  test('takes neither a Read nor a Write for the first message, which its program alone can overrule', async () => {
    const { peer, accepted } = await askServer({}, {}, speakAtOnce);
    await peer.expectSilence(patience);
    await peer.sendReadRequest0();
    await peer.expectReadResponse0();
    await peer.sendWrite0();
    await peer.expectSilence(patience);
    accepted.releaseSends();
    await expectWords(peer);
  });

  test("sends nothing for the initiator kernel's own Read, which its program knows nothing of", async () => {
    const rtr = { peerToPeer: true, readRtr: true };
    const { peer } = await askServer({ enhanced: rtr }, {}, speakAtOnce);
    await peer.expectSilence(patience);
    await peer.sendReadRequest0();
    await peer.expectReadResponse0();
    await peer.expectSilence(patience);
    await peer.send(Buffer.from('hello'));
    await expectWords(peer);
  });

  test('sends nothing on a peer-to-peer connection before the Read and GO, and then everything', async () => {
    const request = { privateData: privateDataOf(offer()) };
    const { peer, header } = await askServer(request, {}, speakAtOnce);
    expect(header).toMatchObject({ peerToPeer: true, readRtr: true, sendRtr: false, writeRtr: false });
    await peer.expectSilence(patience);
    await peer.sendReadRequest0();
    await peer.expectReadResponse0();
    await peer.expectSilence(patience);
    await peer.send(new Uint8Array());
    await expectWords(peer);
  });

  test("with rtr 'write' sends nothing before GO", async () => {
    const privateData = privateDataOf(offer({ readRtr: false, sendRtr: false, writeRtr: true }));
    const { peer, header } = await askServer({ privateData }, {}, speakAtOnce);
    expect(header).toMatchObject({ peerToPeer: true, readRtr: false, sendRtr: false, writeRtr: true });
    await peer.expectSilence(patience);
    await peer.sendWrite0();
    await peer.expectSilence(patience);
    await peer.send(new Uint8Array());
    await expectWords(peer);
  });

  test("with rtr 'send' sends nothing before GO, and GO is no message", async () => {
    const privateData = privateDataOf(offer({ readRtr: false, sendRtr: true }));
    const { peer, accepted, header } = await askServer({ privateData }, {}, speakAtOnce);
    expect(header).toMatchObject({ peerToPeer: true, readRtr: false, sendRtr: true, writeRtr: false });
    await peer.expectSilence(patience);
    await peer.send(new Uint8Array());
    await expectWords(peer);
    await peer.send(Buffer.from('hello'));
    expect((await accepted.receive())!.toString()).toBe('hello');
  });

  test('that declines is as a plain one, and takes an empty message for a message', async () => {
    const request = { privateData: privateDataOf(offer()) };
    const { peer, accepted, header } = await askServer(request, { peerToPeer: false }, speakAtOnce);
    expect(header).toMatchObject({ peerToPeer: false });
    await peer.expectSilence(patience);
    await peer.sendReadRequest0();
    await peer.expectReadResponse0();
    await peer.expectSilence(patience);
    await peer.send(new Uint8Array());
    await expectWords(peer);
    expect(await accepted.receive()).toHaveLength(0);
  });

  test('sends no more messages than the initiator has receives for, and goes on with every credit', async () => {
    const privateData = privateDataOf(offer({ flowControl: true, receiveCredits: 2 }));
    const { peer, header } = await askServer({ privateData }, {}, speakAtOnce);
    expect(header).toMatchObject({ flowControl: true, receiveCredits: 64 });
    await peer.expectSilence(patience);
    await peer.send(new Uint8Array());
    for (const word of words) {
      const { payload } = await peer.expectSend();
      expect(payload[0]).toBe(0);
      expect(text(payload.subarray(4))).toBe(word);
    }
    await peer.expectSilence(patience);
    await peer.send(Uint8Array.of(1, 0, 0, 1));
    expect(text((await peer.expectSend()).payload.subarray(4))).toBe('third');
  });
});

describe('a passive side whose initiator does not keep its word', () => {
  const request = { privateData: privateDataOf(offer()) };

  test('ends the connection when a message comes in place of GO, and sends nothing', async () => {
    let queued: Promise<Error> | undefined;
    const { peer, accepted } = await askServer(request, {}, (connection) => {
      queued = rejection(connection.send(Buffer.from('never')));
    });
    await accepted.established;
    await peer.expectSilence(patience);
    await peer.send(Buffer.from('not GO'));
    await peer.expectEnd();
    const error = await queued!;
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' });
    expect(await rejection(accepted.ready)).toBe(error);
    expect(await rejection(accepted.closed)).toBe(error);
  });

  test('ends the connection when GO does not come in time, and sends nothing', async () => {
    let queued: Promise<Error> | undefined;
    const { peer, accepted } = await askServer(request, {}, (connection) => {
      queued = rejection(connection.send(Buffer.from('never')));
    });
    await peer.expectEnd({ within: 20_000 });
    const error = await queued!;
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_TIMEOUT' });
    expect(await rejection(accepted.closed)).toBe(error);
  });
});

describe('a server', () => {
  test('that requires peer-to-peer rejects a plain request without a word of its own', async () => {
    const { server, peer } = await reachServer({ peerToPeer: 'require' });
    const failed = new Promise<Error>((resolve) => server.once('clientError', resolve));
    await peer.sendRequest({ privateData: Buffer.from('plain') });
    const reply = await peer.receiveReply();
    expect(reply.reject).toBe(true);
    expect(reply.privateData).toHaveLength(0);
    expect(await failed).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' });
    await peer.expectEnd();
  });

  test('gets the private data of an initiator behind its header, and answers it likewise', async () => {
    const { server, peer } = await reachServer({});
    const asked = new Promise<string>((resolve) => {
      server.once('request', (request) => {
        const accepted = request.accept({ privateData: Buffer.from('theirs') });
        onTestFinished(() => void accepted.destroy());
        resolve(text(request.privateData));
      });
    });
    await peer.sendRequest({ privateData: privateDataOf(offer(), 'mine') });
    expect(await asked).toBe('mine');
    const reply = Buffer.from((await peer.receiveReply()).privateData);
    // Magic and version; flags A and D; both depths; the length of what follows the header.
    expect(reply.subarray(0, 5).toString('hex')).toBe('7032700190');
    expect(reply[7]).toBe(6);
    expect(reply.subarray(20).toString()).toBe('theirs');
  });
});
