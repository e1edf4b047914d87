import { crc32c } from './crc32c.js';
import { ProtocolViolation } from './protocol-violation.js';

/**
 * The framing of RFC 5044 §4: ULPDU length, ULPDU, padding to four bytes, CRC; without markers. The CRC field is
 * there even if CRCs are off; it is not looked at then.
 */
const lengthField = 2;
const crcField = 4;

export function encodeFpdu(ulpdu: Uint8Array, crc: boolean): Buffer {
  const covered = padded(lengthField + ulpdu.length);
  const bytes = Buffer.alloc(covered + crcField);
  bytes.writeUInt16BE(ulpdu.length);
  bytes.set(ulpdu, lengthField);
  if (crc) bytes.writeUInt32LE(crc32c(bytes.subarray(0, covered)), covered);
  return bytes;
}

/**
 * Decodes the FPDU at the start of `bytes`; null while it is incomplete.
 *
 * The padding must be zero (RFC 5044 §4.3), but that is not asked for: siw can leave in it what an earlier packet had
 * there (`siw_qp_prepare_tx` steps over the pad of a short message without clearing it).
 */
export function decodeFpdu(bytes: Buffer, crc: boolean): { ulpdu: Buffer; length: number } | null {
  if (bytes.length < lengthField) return null;
  const ulpduLength = bytes.readUInt16BE();
  const covered = padded(lengthField + ulpduLength);
  const length = covered + crcField;
  if (bytes.length < length) return null;
  if (crc) {
    const sent = bytes.readUInt32LE(covered);
    const computed = crc32c(bytes.subarray(0, covered));
    if (sent !== computed) {
      throw new ProtocolViolation(
        `CRC ${hex(sent)} on an FPDU whose CRC is ${hex(computed)} (RFC 5044 §4.4)`,
      );
    }
  }
  return { ulpdu: bytes.subarray(lengthField, lengthField + ulpduLength), length };
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`;
}
