import { describe, expect, test } from 'vitest';
import { crc32c } from '../support/mpa/crc32c.js';
import type { EnhancedSetup } from '../support/mpa/enhanced-setup.js';
import { decodeFpdu, encodeFpdu } from '../support/mpa/fpdu.js';
import { MessageOrder, OutstandingReads } from '../support/mpa/message-order.js';
import { checkReply, decodeMpaFrame, encodeMpaFrame, type MpaFrame } from '../support/mpa/mpa-frame.js';
import { ProtocolViolation } from '../support/mpa/protocol-violation.js';
import type { ReadRequest, ReadResponse, Segment, Send, Write } from '../support/mpa/segment.js';
import { decodeSegment, encodeSegment } from '../support/mpa/segment-codec.js';

const bytes = (length: number, at = (index: number) => index & 0xff) =>
  Uint8Array.from({ length }, (_, index) => at(index));

const enhanced: EnhancedSetup = {
  peerToPeer: true,
  sendRtr: false,
  writeRtr: true,
  readRtr: true,
  ird: 128,
  ord: 0x3fff,
};

const request: MpaFrame = {
  kind: 'request',
  markers: false,
  crc: true,
  reject: false,
  revision: 2,
  enhanced,
  privateData: bytes(20),
};

const send: Send = {
  opcode: 'send',
  last: true,
  msn: 1,
  messageOffset: 0,
  solicited: false,
  invalidate: null,
  payload: bytes(5),
};

const readRequest: ReadRequest = {
  opcode: 'read-request',
  last: true,
  msn: 1,
  messageOffset: 0,
  sinkStag: 0x1234,
  sinkOffset: 0xffff_ffff_0000_0001n,
  size: 0,
  sourceStag: 1,
  sourceOffset: 0n,
};

const write: Write = { opcode: 'write', last: true, stag: 7, taggedOffset: 1n << 40n, payload: bytes(9) };
const readResponse: ReadResponse = { ...write, opcode: 'read-response' };

describe('CRC-32C', () => {
  test.each([
    ['32 bytes of zeroes', bytes(32, () => 0), 'aa36918a'],
    ['32 bytes of ones', bytes(32, () => 0xff), '43aba862'],
    ['32 ascending bytes', bytes(32), '4e79dd46'],
    ['32 descending bytes', bytes(32, (index) => 31 - index), '5cdb3f11'],
    [
      'an iSCSI SCSI Read (10) command',
      Buffer.from(
        '01c00000000000000000000000000000140000000000040000000014000000182800000000000000' +
          '0200000000000000',
        'hex',
      ),
      '563a96d9',
    ],
  ])('has the check value of RFC 3720 appendix B.4 for %s', (_, data, wire) => {
    const onTheWire = Buffer.alloc(4);
    onTheWire.writeUInt32LE(crc32c(data));
    expect(onTheWire.toString('hex')).toBe(wire);
  });
});

describe('an MPA frame', () => {
  test.each([
    ['enhanced request', request],
    ['revision 1 request', { ...request, revision: 1, enhanced: null }],
    ['rejecting reply', { ...request, kind: 'reply', reject: true, crc: false }],
    ['frame without private data', { ...request, privateData: bytes(0) }],
    ['frame with markers', { ...request, markers: true }],
  ] satisfies [string, MpaFrame][])('survives a round trip: %s', (_, frame) => {
    const encoded = encodeMpaFrame(frame);
    expect(decodeMpaFrame(Buffer.concat([encoded, bytes(3)]), frame.kind)).toEqual({
      frame,
      length: encoded.length,
    });
  });

  test('puts IRD and ORD before the private data, as siw does', () => {
    const encoded = encodeMpaFrame(request).toString('latin1');
    expect(encoded.slice(0, 16)).toBe('MPA ID Req Frame');
    expect(Buffer.from(encoded.slice(16, 24), 'latin1').toString('hex')).toBe('500200188080ffff');
  });

  test('is incomplete at every shorter length', () => {
    const encoded = encodeMpaFrame(request);
    for (let length = 0; length < encoded.length; length++) {
      expect(decodeMpaFrame(encoded.subarray(0, length), 'request')).toBeNull();
    }
  });

  test.each([
    ['a wrong key', 0, 0x4e],
    ['a reply where a request is due', 9, 0x70],
    ['a reserved flag', 16, 0x58],
    ['a reject flag in a request', 16, 0x70],
    ['an unknown revision', 17, 3],
    ['an enhanced flag in revision 1', 17, 1],
    ['more private data than there may be', 18, 3],
    ['no room for IRD and ORD', 19, 3],
  ])('is a violation with %s', (_, at, value) => {
    const encoded = encodeMpaFrame(request);
    encoded[at] = value;
    expect(() => decodeMpaFrame(encoded, 'request')).toThrow(ProtocolViolation);
  });

  test.each([
    ['another revision', { revision: 1 }],
    ['no enhanced set-up', { enhanced: null }],
    ['another A flag', { enhanced: { ...enhanced, peerToPeer: false, ord: 1 } }],
    ['a larger ORD than the IRD of the request', { enhanced: { ...enhanced, ord: 129 } }],
  ])('is a violation as a reply with %s', (_, change) => {
    const reply: MpaFrame = { ...request, kind: 'reply', enhanced: { ...enhanced, ord: 128 } };
    checkReply(request, reply);
    expect(() => checkReply(request, { ...reply, ...change })).toThrow(ProtocolViolation);
  });
});

describe('an FPDU', () => {
  test.each([0, 1, 2, 3, 4, 5, 1408, 0xffff])(
    'of a ULPDU of %i bytes fills whole words and survives',
    (length) => {
      for (const crc of [false, true]) {
        const encoded = encodeFpdu(bytes(length), crc);
        expect(encoded.length % 4).toBe(0);
        expect(decodeFpdu(encoded.subarray(0, -1), crc)).toBeNull();
        const decoded = decodeFpdu(encoded, crc);
        expect(decoded?.length).toBe(encoded.length);
        expect(decoded?.ulpdu.equals(bytes(length))).toBe(true);
      }
    },
  );

  test('is a violation with any bit of it flipped, if CRCs are on', () => {
    const encoded = encodeFpdu(bytes(21), true);
    for (let bit = 16; bit < encoded.length * 8; bit++) {
      const damaged = Buffer.from(encoded);
      damaged[bit >> 3] = damaged[bit >> 3]! ^ (1 << (bit & 7));
      expect(() => decodeFpdu(damaged, true)).toThrow(/CRC/);
    }
  });
});

describe('a segment', () => {
  const terminate: Segment = {
    opcode: 'terminate',
    last: true,
    msn: 1,
    messageOffset: 0,
    layer: 2,
    type: 0,
    code: 7,
    payload: bytes(20),
  };

  test.each([
    send,
    { ...send, last: false, msn: 3, messageOffset: 1024, solicited: true, payload: bytes(0) },
    { ...send, invalidate: 0xffff_ffff },
    { ...send, invalidate: 0, solicited: true },
    readRequest,
    write,
    { ...write, last: false, payload: bytes(0) },
    readResponse,
    terminate,
  ] satisfies Segment[])('survives a round trip: %o', (segment) => {
    expect(decodeSegment(encodeSegment(segment))).toEqual(segment);
  });

  test('has the layout of RFC 5040: a 0-byte Read Request', () => {
    expect(encodeSegment(readRequest).toString('hex')).toBe(
      '414100000000000000010000000100000000' +
        '00001234ffffffff00000001' +
        '00000000' +
        '000000010000000000000000',
    );
  });

  test.each([
    ['DDP version 0', send, 0, 0x40],
    ['a reserved DDP bit', send, 0, 0x45],
    ['RDMAP version 0', send, 1, 0x03],
    ['a reserved RDMAP bit', send, 1, 0x53],
    ['an unknown opcode', send, 1, 0x48],
    ['a Send in the tagged model', send, 0, 0xc1],
    ['a Write in the untagged model', write, 0, 0x41],
    ['a filled reserved field', send, 5, 1],
    ['a Send on queue 1', send, 9, 1],
    ['a Read Request on queue 0', readRequest, 9, 0],
    ['a Read Request in segments', readRequest, 0, 0x01],
    ['a Terminate on queue 0', terminate, 9, 0],
  ])('is a violation with %s', (_, segment, at, value) => {
    const encoded = encodeSegment(segment);
    encoded[at] = value;
    expect(() => decodeSegment(encoded)).toThrow(ProtocolViolation);
  });

  test.each([send, readRequest, write, terminate])(
    'is a violation without the whole of its header: %o',
    (segment) => {
      const header = encodeSegment({ ...segment, payload: bytes(0) } as Segment);
      for (let length = 0; length < header.length; length++) {
        expect(() => decodeSegment(header.subarray(0, length))).toThrow(ProtocolViolation);
      }
    },
  );
});

describe('the order of messages', () => {
  const check = (...segments: Segment[]) => {
    const order = new MessageOrder();
    for (const segment of segments) order.check(segment);
  };

  test('lets queues count for themselves and tagged messages come between', () => {
    check(
      readRequest,
      { ...send, last: false },
      { ...write, last: false },
      { ...send, messageOffset: 5 },
      { ...write, taggedOffset: write.taggedOffset + 9n },
      { ...readRequest, msn: 2 },
      { ...send, msn: 2 },
    );
  });

  test.each([
    ['starts at MSN 2', [{ ...send, msn: 2 }]],
    ['starts at MSN 0', [{ ...readRequest, msn: 0 }]],
    ['repeats an MSN', [send, send]],
    ['starts within a message', [{ ...send, messageOffset: 5 }]],
    [
      'leaves a gap in a message',
      [
        { ...send, last: false },
        { ...send, messageOffset: 6 },
      ],
    ],
    [
      'changes the opcode in a message',
      [
        { ...send, last: false },
        { ...send, messageOffset: 5, solicited: true },
      ],
    ],
    ['continues a Write elsewhere', [{ ...write, last: false }, write]],
    ['puts a Read Response within a Write', [{ ...write, last: false }, readResponse]],
  ] satisfies [string, Segment[]][])('is broken by a direction that %s', (_, segments) => {
    expect(() => check(...segments)).toThrow(ProtocolViolation);
  });

  test('matches Read Responses with the Read Requests, in order', () => {
    const reads = new OutstandingReads();
    reads.add({ ...readRequest, sinkStag: 7, sinkOffset: 1n << 40n, size: 18 });
    reads.add(readRequest);
    reads.check({ ...readResponse, last: false });
    reads.check({ ...readResponse, taggedOffset: (1n << 40n) + 9n });
    const second = { ...readResponse, stag: 0x1234, taggedOffset: readRequest.sinkOffset, payload: bytes(0) };
    reads.check(second);
    expect(() => reads.check(second)).toThrow(/nobody asked for/);
  });

  test.each([
    ['another STag', { stag: 8 }],
    ['another offset', { taggedOffset: 0n }],
    ['the length of the request before it, as siw can send', { payload: bytes(64) }],
    ['no end', { last: false }],
  ])('is broken by a Read Response with %s', (_, change) => {
    const reads = new OutstandingReads();
    reads.add({ ...readRequest, sinkStag: 7, sinkOffset: 1n << 40n });
    expect(() => reads.check({ ...readResponse, payload: bytes(0), ...change })).toThrow(ProtocolViolation);
  });
});
