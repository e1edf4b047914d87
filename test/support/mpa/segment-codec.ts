import { ProtocolViolation } from './protocol-violation.js';
import type { Segment } from './segment.js';

const opcodes = {
  write: 0,
  readRequest: 1,
  readResponse: 2,
  send: 3,
  sendInvalidate: 4,
  sendSolicited: 5,
  sendSolicitedInvalidate: 6,
  terminate: 7,
} as const;

/** DDP queue numbers that RDMAP uses: RFC 5040 §4.2. */
const queues = { send: 0, readRequest: 1, terminate: 2 } as const;

const taggedHeader = 14;
const untaggedHeader = 18;
const readRequestHeader = 28;
const terminateControl = 4;

const flagTagged = 0x80;
const flagLast = 0x40;
const ddpVersion = 1;
const rdmapVersion = 1;

/** Encodes a ULPDU: the DDP segment that goes into one FPDU. */
export function encodeSegment(segment: Segment): Buffer {
  switch (segment.opcode) {
    case 'write':
    case 'read-response': {
      const header = Buffer.alloc(taggedHeader);
      writeControl(
        header,
        segment.opcode === 'write' ? opcodes.write : opcodes.readResponse,
        segment.last,
        true,
      );
      header.writeUInt32BE(segment.stag, 2);
      header.writeBigUInt64BE(segment.taggedOffset, 6);
      return Buffer.concat([header, segment.payload]);
    }
    case 'read-request': {
      const body = Buffer.alloc(readRequestHeader);
      body.writeUInt32BE(segment.sinkStag, 0);
      body.writeBigUInt64BE(segment.sinkOffset, 4);
      body.writeUInt32BE(segment.size, 12);
      body.writeUInt32BE(segment.sourceStag, 16);
      body.writeBigUInt64BE(segment.sourceOffset, 20);
      return Buffer.concat([untagged(opcodes.readRequest, queues.readRequest, segment), body]);
    }
    case 'send':
      return Buffer.concat([untagged(sendOpcode(segment), queues.send, segment), segment.payload]);
    case 'terminate': {
      const control = Buffer.of((segment.layer << 4) | segment.type, segment.code, 0, 0);
      return Buffer.concat([
        untagged(opcodes.terminate, queues.terminate, segment),
        control,
        segment.payload,
      ]);
    }
  }
}

/** Decodes a ULPDU and checks all that one segment by itself can get wrong. */
export function decodeSegment(ulpdu: Buffer): Segment {
  demand(ulpdu.length >= 2, `a ULPDU of ${ulpdu.length} bytes (RFC 5041 §4)`);
  const ddp = ulpdu.readUInt8(0);
  const rdmap = ulpdu.readUInt8(1);
  demand((ddp & 0x03) === ddpVersion, `DDP version ${ddp & 0x03} (RFC 5041 §4.1)`);
  demand((ddp & 0x3c) === 0, `reserved DDP bits in ${hex(ddp)} (RFC 5041 §4.1)`);
  demand(rdmap >> 6 === rdmapVersion, `RDMAP version ${rdmap >> 6} (RFC 5040 §4.1)`);
  demand((rdmap & 0x30) === 0, `reserved RDMAP bits in ${hex(rdmap)} (RFC 5040 §4.1)`);
  const opcode = rdmap & 0x0f;
  demand(opcode <= opcodes.terminate, `RDMAP opcode ${opcode} (RFC 5040 §4.1)`);
  const isTagged = (ddp & flagTagged) !== 0;
  const mustBeTagged = opcode === opcodes.write || opcode === opcodes.readResponse;
  demand(isTagged === mustBeTagged, `RDMAP opcode ${opcode} in the wrong DDP model (RFC 5040 §4.1)`);
  const last = (ddp & flagLast) !== 0;
  return isTagged ? decodeTagged(ulpdu, opcode, last) : decodeUntagged(ulpdu, opcode, last);
}

function decodeTagged(ulpdu: Buffer, opcode: number, last: boolean): Segment {
  demand(ulpdu.length >= taggedHeader, `a tagged segment of ${ulpdu.length} bytes (RFC 5041 §4.2)`);
  return {
    opcode: opcode === opcodes.write ? 'write' : 'read-response',
    last,
    stag: ulpdu.readUInt32BE(2),
    taggedOffset: ulpdu.readBigUInt64BE(6),
    payload: Uint8Array.from(ulpdu.subarray(taggedHeader)),
  };
}

function decodeUntagged(ulpdu: Buffer, opcode: number, last: boolean): Segment {
  demand(ulpdu.length >= untaggedHeader, `an untagged segment of ${ulpdu.length} bytes (RFC 5041 §4.3)`);
  const reserved = ulpdu.readUInt32BE(2);
  const queue = ulpdu.readUInt32BE(6);
  const common = { last, msn: ulpdu.readUInt32BE(10), messageOffset: ulpdu.readUInt32BE(14) };
  const body = ulpdu.subarray(untaggedHeader);
  const invalidates = opcode === opcodes.sendInvalidate || opcode === opcodes.sendSolicitedInvalidate;
  demand(
    invalidates || reserved === 0,
    `reserved field ${hex(reserved)} in opcode ${opcode} (RFC 5040 §4.3)`,
  );
  const expected =
    opcode === opcodes.readRequest
      ? queues.readRequest
      : opcode === opcodes.terminate
        ? queues.terminate
        : queues.send;
  demand(queue === expected, `opcode ${opcode} on queue ${queue} (RFC 5040 §4.2)`);
  if (opcode === opcodes.readRequest) {
    demand(body.length === readRequestHeader, `a Read Request of ${body.length} bytes (RFC 5040 §4.4)`);
    demand(last && common.messageOffset === 0, 'a Read Request in several segments (RFC 5040 §4.4)');
    return {
      opcode: 'read-request',
      ...common,
      sinkStag: body.readUInt32BE(0),
      sinkOffset: body.readBigUInt64BE(4),
      size: body.readUInt32BE(12),
      sourceStag: body.readUInt32BE(16),
      sourceOffset: body.readBigUInt64BE(20),
    };
  }
  if (opcode === opcodes.terminate) {
    demand(body.length >= terminateControl, `a Terminate of ${body.length} bytes (RFC 5040 §4.8)`);
    demand(last && common.messageOffset === 0, 'a Terminate in several segments (RFC 5040 §4.8)');
    return {
      opcode: 'terminate',
      ...common,
      layer: body.readUInt8(0) >> 4,
      type: body.readUInt8(0) & 0x0f,
      code: body.readUInt8(1),
      payload: Uint8Array.from(body.subarray(terminateControl)),
    };
  }
  return {
    opcode: 'send',
    ...common,
    solicited: opcode === opcodes.sendSolicited || opcode === opcodes.sendSolicitedInvalidate,
    invalidate: invalidates ? reserved : null,
    payload: Uint8Array.from(body),
  };
}

function untagged(
  opcode: number,
  queue: number,
  segment: { last: boolean; msn: number; messageOffset: number; invalidate?: number | null },
): Buffer {
  const header = Buffer.alloc(untaggedHeader);
  writeControl(header, opcode, segment.last, false);
  header.writeUInt32BE(segment.invalidate ?? 0, 2);
  header.writeUInt32BE(queue, 6);
  header.writeUInt32BE(segment.msn, 10);
  header.writeUInt32BE(segment.messageOffset, 14);
  return header;
}

function sendOpcode({ solicited, invalidate }: { solicited: boolean; invalidate: number | null }): number {
  if (invalidate === null) return solicited ? opcodes.sendSolicited : opcodes.send;
  return solicited ? opcodes.sendSolicitedInvalidate : opcodes.sendInvalidate;
}

function writeControl(header: Buffer, opcode: number, last: boolean, tagged: boolean): void {
  header[0] = (tagged ? flagTagged : 0) | (last ? flagLast : 0) | ddpVersion;
  header[1] = (rdmapVersion << 6) | opcode;
}

function demand(condition: boolean, violation: string): asserts condition {
  if (!condition) throw new ProtocolViolation(violation);
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
