import { describe, expect, test } from 'vitest';
import { describeConversation, readConversations } from '../support/capture/conversation.js';
import { encodeFpdu } from '../support/mpa/fpdu.js';
import { encodeMpaFrame, type MpaFrame } from '../support/mpa/mpa-frame.js';
import type { Segment } from '../support/mpa/segment.js';
import { encodeSegment } from '../support/mpa/segment-codec.js';

const request: MpaFrame = {
  kind: 'request',
  markers: false,
  crc: true,
  reject: false,
  revision: 2,
  enhanced: { peerToPeer: false, sendRtr: false, writeRtr: false, readRtr: false, ird: 1, ord: 1 },
  privateData: Uint8Array.from(Buffer.from('user')),
};
const reply: MpaFrame = { ...request, kind: 'reply', privateData: new Uint8Array() };
const send = (msn: number, payload: Uint8Array): Segment => ({
  opcode: 'send',
  last: true,
  msn,
  messageOffset: 0,
  solicited: false,
  invalidate: null,
  payload,
});
const fpdu = (segment: Segment) => encodeFpdu(encodeSegment(segment), true);

interface Sent {
  from: 'client' | 'server';
  offset: number;
  payload?: Buffer;
  flags?: number;
}

interface Shape {
  ipv6?: boolean;
  littleEndian?: boolean;
  nanoseconds?: boolean;
  ports?: { client: number; server: number };
  /** Initial sequence numbers close to the wrap. */
  start?: number;
}

const syn = 0x02;
const fin = 0x01;
const rst = 0x04;
const ack = 0x10;

function tcp(sent: Sent, { ports = { client: 40000, server: 7471 }, start = 0xffff_fff0 }: Shape): Buffer {
  const header = Buffer.alloc(24);
  const isClient = sent.from === 'client';
  header.writeUInt16BE(isClient ? ports.client : ports.server, 0);
  header.writeUInt16BE(isClient ? ports.server : ports.client, 2);
  header.writeUInt32BE((start + sent.offset) >>> 0, 4);
  header[12] = 6 << 4;
  header[13] = sent.flags ?? ack;
  return Buffer.concat([header, sent.payload ?? Buffer.alloc(0)]);
}

function ethernet(sent: Sent, shape: Shape): Buffer {
  const content = tcp(sent, shape);
  const addresses = sent.from === 'client' ? [1, 2] : [2, 1];
  const link = Buffer.alloc(14);
  link.writeUInt16BE(shape.ipv6 ? 0x86dd : 0x0800, 12);
  if (shape.ipv6) {
    const ip = Buffer.alloc(40);
    ip.writeUInt16BE(content.length, 4);
    ip[6] = 6;
    for (const [index, last] of addresses.entries()) {
      ip.writeUInt16BE(0xfd00, 8 + 16 * index);
      ip[23 + 16 * index] = last;
    }
    return Buffer.concat([link, ip, content]);
  }
  const ip = Buffer.alloc(20);
  ip[0] = 0x45;
  ip.writeUInt16BE(20 + content.length, 2);
  ip.writeUInt16BE(0x4000, 6);
  ip[9] = 6;
  for (const [index, last] of addresses.entries()) ip.set([10, 0, 0, last], 12 + 4 * index);
  const frame = Buffer.concat([link, ip, content]);
  return frame.length < 60 ? Buffer.concat([frame, Buffer.alloc(60 - frame.length, 0xee)]) : frame;
}

/** A pcap file whose packets are a millisecond apart, the first at one second past 1970. */
function pcap(packets: readonly Sent[], shape: Shape = {}): Buffer {
  const word = (value: number) => {
    const bytes = Buffer.alloc(4);
    if (shape.littleEndian) bytes.writeUInt32LE(value);
    else bytes.writeUInt32BE(value);
    return bytes;
  };
  const magic = shape.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4;
  const version = shape.littleEndian ? Buffer.of(2, 0, 4, 0) : Buffer.of(0, 2, 0, 4);
  const header = [word(magic), version, word(0), word(0), word(262_144), word(1)];
  const records = packets.flatMap((sent, index) => {
    const bytes = ethernet(sent, shape);
    const fraction = index * (shape.nanoseconds ? 1e6 : 1e3);
    return [word(1), word(fraction), word(bytes.length), word(bytes.length), bytes];
  });
  return Buffer.concat([...header, ...records]);
}

const requestBytes = encodeMpaFrame(request);
const replyBytes = encodeMpaFrame(reply);
const first = fpdu(send(1, Buffer.from('first')));
const second = fpdu(send(2, Buffer.alloc(0)));
const answer = fpdu(send(1, Buffer.from('answer')));
const behindRequest = 1 + requestBytes.length;
const behindReply = 1 + replyBytes.length;

const opening: Sent[] = [
  { from: 'client', offset: 0, flags: syn },
  { from: 'server', offset: 0, flags: syn | ack },
  { from: 'client', offset: 1 },
  { from: 'client', offset: 1, payload: requestBytes },
  { from: 'server', offset: 1, payload: replyBytes },
];

const exchange: Sent[] = [
  ...opening,
  { from: 'client', offset: behindRequest, payload: first },
  { from: 'client', offset: behindRequest + first.length, payload: second },
  { from: 'server', offset: behindReply, payload: answer },
];

const closing: Sent[] = [
  { from: 'client', offset: behindRequest + first.length + second.length, flags: fin | ack },
  { from: 'server', offset: behindReply + answer.length, flags: fin | ack },
];

const only = (file: Buffer) => {
  const conversations = readConversations(file);
  expect(conversations).toHaveLength(1);
  return conversations[0]!;
};
const payloads = (fpdus: readonly Segment[]) =>
  fpdus.map((segment) => ('payload' in segment ? Buffer.from(segment.payload).toString() : segment.opcode));

describe('a capture', () => {
  test.each([
    {},
    { littleEndian: true },
    { nanoseconds: true },
    { littleEndian: true, nanoseconds: true, ipv6: true },
    { start: 5 },
  ] satisfies Shape[])('shows frames and FPDUs with their times: %o', (shape) => {
    const conversation = only(pcap([...exchange, ...closing], shape));
    expect(conversation.initiator).toBe('ipv6' in shape ? '[fd00:0:0:0:0:0:0:1]:40000' : '10.0.0.1:40000');
    expect(conversation.responder).toBe('ipv6' in shape ? '[fd00:0:0:0:0:0:0:2]:7471' : '10.0.0.2:7471');
    expect(conversation.request).toEqual({ ...request, at: 1003 });
    expect(conversation.reply).toEqual({ ...reply, at: 1004 });
    expect(payloads(conversation.fromInitiator)).toEqual(['first', '']);
    expect(payloads(conversation.fromResponder)).toEqual(['answer']);
    expect(conversation.fromInitiator.map(({ at }) => at)).toEqual([1005, 1006]);
    expect(conversation.isOver).toBe(true);
    expect(describeConversation(conversation)).toMatch(
      /MPA request[\s\S]*MPA reply[\s\S]*-> Send 1, 5 bytes[\s\S]*-> Send 2, 0 bytes[\s\S]*<- Send 1, 6 bytes/,
    );
  });

  test('puts segments in order that were captured out of order, at the time when they were whole', () => {
    const [late, early, ...rest] = exchange.slice(opening.length);
    const conversation = only(pcap([...opening, early!, late!, ...rest]));
    expect(payloads(conversation.fromInitiator)).toEqual(['first', '']);
    expect(conversation.fromInitiator.map(({ at }) => at)).toEqual([1006, 1006]);
  });

  test('counts a retransmission once, even one that overlaps or comes in other pieces', () => {
    const both = Buffer.concat([first, second]);
    const conversation = only(
      pcap([
        opening[0]!,
        ...opening,
        opening[3]!,
        { from: 'client', offset: behindRequest, payload: both.subarray(0, 10) },
        { from: 'client', offset: behindRequest + 20, payload: both.subarray(20) },
        { from: 'client', offset: behindRequest + 4, payload: both.subarray(4, 30) },
        { from: 'client', offset: behindRequest, payload: both },
      ]),
    );
    expect(payloads(conversation.fromInitiator)).toEqual(['first', '']);
    expect(conversation.isOver).toBe(false);
  });

  test('is read as far as it goes, at whatever byte it ends', () => {
    const file = pcap([...exchange, ...closing]);
    for (let length = 0; length < file.length; length++) {
      const [conversation] = readConversations(file.subarray(0, length));
      expect(conversation?.isOver ?? false).toBe(false);
    }
  });

  test('keeps connections apart that follow one another on the same ports', () => {
    const restart = exchange.map((sent) => ({ ...sent, offset: sent.offset + 1_000_000 }));
    const conversations = readConversations(pcap([...exchange, ...closing, ...restart]));
    expect(conversations.map(({ isOver }) => isOver)).toEqual([true, false]);
    expect(conversations.map(({ fromResponder }) => payloads(fromResponder))).toEqual([
      ['answer'],
      ['answer'],
    ]);
  });

  test('leaves out traffic that is not MPA', () => {
    const other: Sent[] = [
      { from: 'client', offset: 0, flags: syn },
      { from: 'client', offset: 1, payload: Buffer.from('GET / HTTP/1.1\r\n\r\n') },
      { from: 'server', offset: 0, flags: rst },
    ];
    expect(readConversations(pcap(other))).toEqual([]);
  });

  test('shows a violation of the protocol', () => {
    const damaged = Buffer.from(first);
    damaged[21] = 0;
    const file = pcap([...opening, { from: 'client', offset: behindRequest, payload: damaged }]);
    expect(() => readConversations(file)).toThrow(/CRC/);
  });

  test('is refused in another format', () => {
    expect(() => readConversations(Buffer.alloc(64, 'x'))).toThrow(/not a pcap file/);
    const raw = pcap([]);
    raw.writeUInt32BE(101, 20);
    expect(() => readConversations(raw)).toThrow(/link type 101/);
  });
});
