import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeFpdu } from '../support/mpa/fpdu.js';
import { encodeMpaFrame, type MpaFrame } from '../support/mpa/mpa-frame.js';
import type { Peer } from '../support/mpa/peer.js';
import { ProtocolViolation } from '../support/mpa/protocol-violation.js';
import { connectFrom, listenOn } from '../support/mpa/remote-peer.js';
import type { Send } from '../support/mpa/segment.js';
import { encodeSegment } from '../support/mpa/segment-codec.js';
import { StrictPeer } from '../support/mpa/strict-peer.js';

const host = '127.0.0.1';
const here = { command: (argv: readonly string[]) => argv };

const request: MpaFrame = {
  kind: 'request',
  markers: false,
  crc: false,
  reject: false,
  revision: 1,
  enhanced: null,
  privateData: new Uint8Array(),
};
const reply: MpaFrame = { ...request, kind: 'reply' };
const send: Send = {
  opcode: 'send',
  last: true,
  msn: 1,
  messageOffset: 0,
  solicited: false,
  invalidate: null,
  payload: Buffer.from('early'),
};
const fpdu = (segment: Send, crc = false) => encodeFpdu(encodeSegment(segment), crc);

const places = [
  { place: 'in this process', listen: StrictPeer.listen, connect: StrictPeer.connect },
  {
    place: 'in processes of their own',
    listen: (to: { host: string }) => listenOn(here, to),
    connect: (to: { host: string; port: number }) => connectFrom(here, to),
  },
];

describe.each(places)('two strict peers $place', (where) => {
  let responder: Peer;
  let initiator: Peer;

  beforeEach(async () => {
    responder = await where.listen({ host });
    initiator = await where.connect(responder.localAddress);
  });

  afterEach(async () => {
    await initiator.close();
    await responder.close();
  });

  test.each([
    { crc: false, enhanced: null },
    { crc: true, enhanced: null },
    { crc: false, enhanced: { ird: 3, ord: 5 } },
    { crc: true, enhanced: { ird: 3, ord: 5, peerToPeer: true, readRtr: true, writeRtr: true } },
  ])('carry the whole handshake with %o', async (options) => {
    const offer = Buffer.from('offer');
    await initiator.sendRequest({ ...options, privateData: offer });
    const request = await responder.receiveRequest();
    expect(request).toMatchObject({ crc: options.crc, revision: options.enhanced === null ? 1 : 2 });
    expect(Buffer.from(request.privateData)).toEqual(offer);
    await responder.sendReply({ privateData: Buffer.from('answer') });
    const reply = await initiator.receiveReply();
    expect(Buffer.from(reply.privateData).toString()).toBe('answer');
    if (options.enhanced !== null) expect(reply.enhanced).toMatchObject({ ird: 5, ord: 3 });

    await initiator.sendReadRequest0();
    await initiator.send(new Uint8Array());
    const read = await responder.expectReadRequest0();
    const go = await responder.expectSend();
    expect(go.payload.length).toBe(0);
    expect(go.at).toBeGreaterThanOrEqual(read.at);
    await responder.sendReadResponse0(read);
    await initiator.expectReadResponse0();

    const message = Buffer.alloc(5000, 'message');
    await responder.send(message);
    const received = await initiator.expectSend();
    expect(received.msn).toBe(1);
    expect(Buffer.compare(received.payload, message)).toBe(0);
    await initiator.sendWrite0();
    await responder.expectWrite0();
    await responder.sendTerminate({ layer: 1, type: 2, code: 2 });
    expect(await initiator.expectTerminate()).toMatchObject({ layer: 1, type: 2, code: 2 });
    await initiator.close();
    await responder.expectEnd();
  });

  test('tell each other of a rejection with private data', async () => {
    await initiator.sendRequest();
    await responder.receiveRequest();
    await responder.sendReply({ reject: true, privateData: Buffer.from('no') });
    const reply = await initiator.receiveReply();
    expect(reply.reject).toBe(true);
    expect(Buffer.from(reply.privateData).toString()).toBe('no');
    await expect(initiator.send(Buffer.from('x'))).rejects.toThrow(/accepting/);
  });

  test('show silence, and what broke it', async () => {
    await initiator.sendRequest();
    await responder.receiveRequest();
    await responder.sendReply();
    await initiator.receiveReply();
    await responder.expectSilence(20);
    const broken = expect(responder.expectSilence(60_000)).rejects.toThrow(
      /there is Write, 0 bytes[\s\S]*<- MPA request[\s\S]*<- Write, 0 bytes/,
    );
    await initiator.sendWrite0();
    await broken;
  });

  test('name what came instead of what was due', async () => {
    await initiator.sendRequest();
    await responder.receiveRequest();
    await responder.sendReply();
    await initiator.receiveReply();
    await initiator.send(Buffer.from('hello'));
    await expect(responder.expectReadRequest0()).rejects.toThrow(
      /a 0-byte Read Request was due, but there is Send 1, 5 bytes/,
    );
    await expect(responder.nextFpdu({ within: 1 })).rejects.toThrow(/an FPDU was due within 1 ms/);
  });

  test('do not let a responder speak first', async () => {
    await initiator.sendRequest();
    await responder.receiveRequest();
    await responder.sendReply();
    await expect(responder.send(Buffer.from('x'))).rejects.toThrow(/has to wait for the initiator/);
  });

  test('learn of the end instead of waiting on', async () => {
    const informed = expect(responder.receiveRequest()).rejects.toThrow(
      /an MPA request was due, but the connection has ended/,
    );
    await initiator.close();
    await informed;
  });
});

test("a peer's process that is killed ends its connection", async () => {
  const responder = await StrictPeer.listen({ host });
  const initiator = await connectFrom(here, responder.localAddress);
  await initiator.sendRequest();
  await responder.receiveRequest();
  await initiator.kill();
  await responder.expectEnd();
  await expect(initiator.history()).rejects.toThrow(/process has ended: SIGKILL/);
  await responder.close();
});

describe('a strict responder', () => {
  let responder: StrictPeer;
  let socket: Socket;

  beforeEach(async () => {
    responder = await StrictPeer.listen({ host });
    socket = connect({ ...responder.localAddress });
    await once(socket, 'connect');
  });

  afterEach(() => {
    socket.destroy();
  });

  test('detects data before its reply', async () => {
    socket.write(encodeMpaFrame(request));
    await responder.receiveRequest();
    const next = responder.nextFpdu();
    socket.write(fpdu(send));
    await expect(next).rejects.toThrow(/before the MPA reply/);
    await responder.close();
  });

  test('detects data right behind the request', async () => {
    socket.write(Buffer.concat([encodeMpaFrame(request), Buffer.of(0)]));
    await responder.receiveRequest();
    await expect(responder.close()).rejects.toThrow(/before the MPA reply/);
  });

  test.each([
    ['a wrong CRC', true, [fpdu(send)], /CRC 0x00000000/],
    ['a wrong MSN', false, [fpdu({ ...send, msn: 2 })], /MSN 2 where 1 was due/],
    ['a Read Response without a Read', false, [], /nobody asked for/],
  ])('detects %s, and nothing before it is lost', async (_, crc, bad, message) => {
    socket.write(encodeMpaFrame({ ...request, crc }));
    await responder.receiveRequest();
    await responder.sendReply();
    const good = encodeFpdu(
      encodeSegment({ opcode: 'write', last: true, stag: 1, taggedOffset: 0n, payload: new Uint8Array() }),
      crc,
    );
    const stray = encodeFpdu(
      encodeSegment({
        opcode: 'read-response',
        last: true,
        stag: 1,
        taggedOffset: 0n,
        payload: new Uint8Array(),
      }),
      crc,
    );
    socket.write(Buffer.concat([good, ...(bad.length > 0 ? bad : [stray])]));
    await responder.expectWrite0();
    const violated = responder.nextFpdu();
    await expect(violated).rejects.toThrow(ProtocolViolation);
    await expect(violated).rejects.toThrow(message);
    await responder.close();
  });

  test('puts FPDUs together from single bytes', async () => {
    socket.setNoDelay(true);
    for (const byte of encodeMpaFrame(request)) socket.write(Buffer.of(byte));
    await responder.receiveRequest();
    await responder.sendReply();
    for (const byte of fpdu(send)) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    }
    expect(Buffer.from((await responder.expectSend()).payload).toString()).toBe('early');
    await responder.close();
  });
});

describe('a strict initiator', () => {
  async function meet(answer: Buffer): Promise<{ initiator: StrictPeer; end: () => void }> {
    const server = createServer((socket) => socket.once('data', () => socket.write(answer)));
    server.listen({ host, port: 0 });
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const initiator = await StrictPeer.connect({ host, port: address.port });
    await initiator.sendRequest({ enhanced: null });
    return { initiator, end: () => server.close() };
  }

  test("detects an FPDU before its own first, be it right behind the responder's reply", async () => {
    const { initiator, end } = await meet(Buffer.concat([encodeMpaFrame(reply), fpdu(send)]));
    await initiator.receiveReply();
    await expect(initiator.expectSilence(60_000)).rejects.toThrow(/before the initiator's first/);
    await initiator.close();
    end();
  });

  test('reports at the latest on closing what no wait has reported', async () => {
    const { initiator, end } = await meet(Buffer.concat([encodeMpaFrame(reply), fpdu(send)]));
    await initiator.receiveReply();
    await expect(initiator.close()).rejects.toThrow(/before the initiator's first[\s\S]*VIOLATION/);
    end();
  });

  test('detects a reply of another revision', async () => {
    const { initiator, end } = await meet(encodeMpaFrame({ ...reply, revision: 2 }));
    await expect(initiator.receiveReply()).rejects.toThrow(/revision 2/);
    await initiator.close();
    end();
  });

  test('detects data behind a rejecting reply', async () => {
    const { initiator, end } = await meet(
      Buffer.concat([encodeMpaFrame({ ...reply, reject: true }), fpdu(send)]),
    );
    await initiator.receiveReply();
    await expect(initiator.close()).rejects.toThrow(/rejected/);
    end();
  });
});
