import { createServer as createTcpServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dial, rejection } from '../support/connection-pair.js';
import { siw } from '../support/devices.js';
import type { StrictPeer } from '../support/mpa/strict-peer.js';
import {
  answer,
  askServer,
  dialPeer,
  offer,
  privateDataOf,
  reachServer,
  text,
} from '../support/wire-peer.js';

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const accepting = { privateData: privateDataOf(answer()) };

describe('a reply whose private data is no header', () => {
  test.each([
    ['of noise', bytes('ff 00 a5 5a 99')],
    ['that ends within the header', privateDataOf(answer()).subarray(0, 19)],
    ['of another version', bytes('70 32 70 02 90 01 01 00 00 00 00 00 00 00 20 00 00 00 00 01')],
    [
      'that says to be longer than it is',
      bytes('70 32 70 01 90 01 01 05 00 00 00 00 00 00 20 00 00 00 00 01'),
    ],
  ])('but something %s is the data of a peer that takes no part', async (_, privateData) => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    const sent = client.send(Buffer.from('after'));
    await peer.sendReply({ privateData });
    await peer.sendReadResponse0(await peer.expectReadRequest0());
    expect(text((await peer.expectSend()).payload)).toBe('after');
    await sent;
    expect(client.privateData).toEqual(Buffer.from(privateData));
    expect(client.peerToPeer.negotiated).toBe(false);
  });
});

describe('an answer that does not fit the offer', () => {
  test.each([
    ['agrees and names no ready-to-receive message', { readRtr: false }],
    ['chooses one that was not offered', { readRtr: false, writeRtr: true }],
  ])('since it %s ends the connection before any FPDU', async (_, overrides) => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    const queued = rejection(client.send(Buffer.from('never')));
    await peer.sendReply({ privateData: privateDataOf(answer(overrides)) });
    await peer.expectEnd();
    const error = await queued;
    expect(error).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' });
    expect(await rejection(client.closed)).toBe(error);
  });

  test('since it counts credits that were not offered ends the connection before any FPDU', async () => {
    const { client, peer } = await dialPeer({ peerToPeer: true, flowControl: false });
    const queued = rejection(client.send(Buffer.from('never')));
    await peer.sendReply({ privateData: privateDataOf(answer({ flowControl: true, receiveCredits: 4 })) });
    await peer.expectEnd();
    expect(await queued).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' });
  });
});

describe('an active side whose peer breaks off', () => {
  const afterRead = async (peer: StrictPeer) => {
    await peer.sendReply(accepting);
    await peer.expectReadRequest0();
    await peer.expectSend();
  };
  const outOfCredits = async (peer: StrictPeer) => {
    await peer.sendReply({ privateData: privateDataOf(answer({ flowControl: true, receiveCredits: 1 })) });
    await peer.sendReadResponse0(await peer.expectReadRequest0());
    await peer.expectSend();
    await peer.expectSend();
  };
  const end = (peer: StrictPeer) => peer.close();
  const terminate = (peer: StrictPeer) => peer.sendTerminate({ layer: 1, type: 1, code: 5 });

  test.each([
    // siw tells of a FIN in place of the reply as it does of a reject: REJECTED, -ECONNRESET (siw_cm_work_handler()).
    ['before the reply, with a FIN', async () => {}, end, /^ERR_RDMA_REJECTED$/],
    ['in place of the Response, with a FIN', afterRead, end, /^ECONNRESET$/],
    ['in place of the Response, with a Terminate', afterRead, terminate, /^(ECONNRESET|ERR_RDMA_WC_.*)$/],
    ['before it gives a credit, with a FIN', outOfCredits, end, /^ECONNRESET$/],
    ['before it gives a credit, with a Terminate', outOfCredits, terminate, /^(ECONNRESET|ERR_RDMA_WC_.*)$/],
  ])('%s has all that was queued rejected with one cause', async (_, stage, breakOff, code) => {
    const { client, peer } = await dialPeer({ peerToPeer: true });
    client.send(Buffer.from('one')).catch(() => {});
    const queued = [rejection(client.send(Buffer.from('two'))), rejection(client.send(Buffer.from('three')))];
    const received = rejection(client.receive());
    const closed = rejection(client.closed);
    await stage(peer);
    await breakOff(peer);
    const error = await closed;
    expect(error.code).toMatch(code);
    expect(await Promise.all(queued)).toEqual([error, error]);
    expect(await received).toBe(error);
    expect(client.state).toBe('closed');
  });

  test('with a reply that is none of MPA has all that was queued rejected with one cause', async () => {
    const garbage = createTcpServer((socket) => {
      socket.on('error', () => {});
      // Nothing but the length is as in a reply: siw 6.1 dies of one that promises private data and is garbage, in
      // cm_event_handler(), which copies what siw_cm_upcall() has not got.
      socket.once('data', () => socket.end(Buffer.concat([Buffer.alloc(18, 'garbage'), Buffer.alloc(2)])));
    });
    onTestFinished(() => void garbage.close());
    garbage.listen(0, siw.address);
    await new Promise((resolve) => garbage.once('listening', resolve));
    const { port } = garbage.address() as { port: number };
    const client = dial(siw, port, { peerToPeer: true });
    const queued = rejection(client.send(Buffer.from('never')));
    const error = await rejection(client.established);
    expect(error.code).toMatch(/^ECONN(RESET|ABORTED)$/);
    expect(await queued).toBe(error);
  });
});

describe('a passive side whose peer breaks off', () => {
  test.each([
    ['before GO, with a FIN', (peer: StrictPeer) => peer.close()],
    [
      'before GO, with a Terminate',
      async (peer: StrictPeer) => {
        await peer.sendReadRequest0();
        await peer.expectReadResponse0();
        await peer.sendTerminate();
      },
    ],
  ])('%s has all that was queued rejected with one cause', async (_, breakOff) => {
    const queued: Promise<Error>[] = [];
    const { peer, accepted } = await askServer({ privateData: privateDataOf(offer()) }, {}, (connection) => {
      queued.push(
        rejection(connection.send(Buffer.from('one'))),
        rejection(connection.send(Buffer.from('two'))),
      );
    });
    await accepted.established;
    const closed = rejection(accepted.closed);
    await breakOff(peer);
    const error = await closed;
    expect(error.code).toMatch(/^ECONN(RESET|ABORTED)$/);
    expect(await Promise.all(queued)).toEqual([error, error]);
  });

  test('before it is accepted fails, and has what was queued rejected', async () => {
    const { server, peer } = await reachServer({});
    const asked = new Promise<ReturnType<typeof rejection>[]>((resolve) => {
      server.once('request', async (request) => {
        await peer.close();
        const accepted = request.accept({ timeout: 2000 });
        resolve([rejection(accepted.send(Buffer.from('never'))), rejection(accepted.closed)]);
      });
    });
    await peer.sendRequest({ privateData: privateDataOf(offer()) });
    const [queued, closed] = await Promise.all(await asked);
    expect(queued).toBe(closed);
    expect(queued!.code).toMatch(/^(ECONNRESET|ECONNABORTED|ETIMEDOUT)$/);
  });
});
