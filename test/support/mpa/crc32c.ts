/** CRC-32C (Castagnoli), reflected, as iSCSI and MPA use it: RFC 3720 §12.1, RFC 5044 §4.4. */
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) {
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0x82f63b78 : remainder >>> 1;
  }
  return remainder;
});

export function crc32c(bytes: Uint8Array): number {
  let remainder = 0xffffffff;
  for (const byte of bytes) remainder = table[(remainder ^ byte) & 0xff]! ^ (remainder >>> 8);
  return ~remainder >>> 0;
}
