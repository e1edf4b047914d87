import {
  decodeEnhancedSetup,
  type EnhancedSetup,
  encodeEnhancedSetup,
  enhancedSetupLength,
} from './enhanced-setup.js';
import { ProtocolViolation } from './protocol-violation.js';

/** An MPA request or reply: RFC 5044 §7.1.1, RFC 6581 §5. */
export interface MpaFrame {
  readonly kind: 'request' | 'reply';
  readonly markers: boolean;
  readonly crc: boolean;
  readonly reject: boolean;
  readonly revision: number;
  /** Present exactly if the frame has the S flag. */
  readonly enhanced: EnhancedSetup | null;
  /** The user's bytes: without the two words of the enhanced set-up. */
  readonly privateData: Uint8Array;
}

const keys = { request: 'MPA ID Req Frame', reply: 'MPA ID Rep Frame' } as const;
const headerLength = 20;
const maxPrivateData = 512;
const flag = { markers: 0x80, crc: 0x40, reject: 0x20, enhanced: 0x10 } as const;

export function encodeMpaFrame(frame: MpaFrame): Buffer {
  const words = frame.enhanced ? encodeEnhancedSetup(frame.enhanced) : Buffer.alloc(0);
  const header = Buffer.alloc(headerLength);
  header.write(keys[frame.kind], 'latin1');
  header[16] =
    (frame.markers ? flag.markers : 0) |
    (frame.crc ? flag.crc : 0) |
    (frame.reject ? flag.reject : 0) |
    (frame.enhanced ? flag.enhanced : 0);
  header[17] = frame.revision;
  header.writeUInt16BE(words.length + frame.privateData.length, 18);
  return Buffer.concat([header, words, frame.privateData]);
}

/** Decodes the frame at the start of `bytes`; null while it is incomplete. */
export function decodeMpaFrame(
  bytes: Buffer,
  kind: MpaFrame['kind'],
): { frame: MpaFrame; length: number } | null {
  const key = Buffer.from(keys[kind], 'latin1');
  const seen = bytes.subarray(0, key.length);
  if (!seen.equals(key.subarray(0, seen.length))) {
    throw new ProtocolViolation(`key of the MPA ${kind} is ${seen.toString('hex')} (RFC 5044 §7.1.1)`);
  }
  if (bytes.length < headerLength) return null;
  const flags = bytes.readUInt8(16);
  const revision = bytes.readUInt8(17);
  const length = bytes.readUInt16BE(18);
  if (revision !== 1 && revision !== 2) throw new ProtocolViolation(`MPA revision ${revision} (RFC 6581 §5)`);
  const known = revision === 2 ? 0xf0 : 0xe0;
  if (flags & ~known) {
    throw new ProtocolViolation(`reserved MPA flags in 0x${flags.toString(16)} (RFC 5044 §7.1.1)`);
  }
  if (length > maxPrivateData) {
    throw new ProtocolViolation(`${length} bytes of private data (RFC 5044 §7.1.1)`);
  }
  if (kind === 'request' && flags & flag.reject) {
    throw new ProtocolViolation('an MPA request with the R flag (RFC 5044 §7.1.1)');
  }
  const isEnhanced = (flags & flag.enhanced) !== 0;
  if (isEnhanced && length < enhancedSetupLength) {
    throw new ProtocolViolation(`the S flag, but ${length} bytes of private data (RFC 6581 §5)`);
  }
  if (bytes.length < headerLength + length) return null;
  const data = bytes.subarray(headerLength, headerLength + length);
  return {
    frame: {
      kind,
      markers: (flags & flag.markers) !== 0,
      crc: (flags & flag.crc) !== 0,
      reject: (flags & flag.reject) !== 0,
      revision,
      enhanced: isEnhanced ? decodeEnhancedSetup(data) : null,
      privateData: Uint8Array.from(isEnhanced ? data.subarray(enhancedSetupLength) : data),
    },
    length: headerLength + length,
  };
}

/** RFC 5044 §7.1: CRCs are used in both directions as soon as either side asks for them. */
export function usesCrc(request: MpaFrame, reply: MpaFrame): boolean {
  return request.crc || reply.crc;
}

/** What a reply owes to its request. */
export function checkReply(request: MpaFrame, reply: MpaFrame): void {
  if (reply.revision !== request.revision) {
    throw new ProtocolViolation(`a reply of revision ${reply.revision} to a request of ${request.revision}`);
  }
  if ((reply.enhanced !== null) !== (request.enhanced !== null)) {
    throw new ProtocolViolation('the S flag of the reply differs from that of the request (RFC 6581 §5)');
  }
  if (!reply.enhanced || !request.enhanced || reply.reject) return;
  if (reply.enhanced.peerToPeer !== request.enhanced.peerToPeer) {
    throw new ProtocolViolation('the A flag of the reply differs from that of the request (RFC 6581 §9)');
  }
  if (reply.enhanced.ord > request.enhanced.ird) {
    throw new ProtocolViolation(
      `ORD ${reply.enhanced.ord} in reply to an IRD of ${request.enhanced.ird} (RFC 6581 §9)`,
    );
  }
}

/** One line for a history. */
export function describeMpaFrame(frame: MpaFrame): string {
  const parts = [`MPA ${frame.kind}`, `revision ${frame.revision}`];
  if (frame.reject) parts.push('reject');
  if (frame.crc) parts.push('CRC');
  if (frame.enhanced?.peerToPeer) parts.push('peer-to-peer');
  if (frame.enhanced) parts.push(`IRD ${frame.enhanced.ird}`, `ORD ${frame.enhanced.ord}`);
  return [...parts, `${frame.privateData.length} bytes of private data`].join(', ');
}
