/** A captured packet and its time in milliseconds since 1970. */
export interface Packet {
  readonly at: number;
  readonly bytes: Buffer;
}

const fileHeader = 24;
const recordHeader = 16;
const linkTypeEthernet = 1;
/** First four bytes as a big-endian number → the file's byte order and its fractions of a millisecond. */
const magics = new Map([
  [0xa1b2c3d4, { littleEndian: false, perMillisecond: 1e3 }],
  [0xd4c3b2a1, { littleEndian: true, perMillisecond: 1e3 }],
  [0xa1b23c4d, { littleEndian: false, perMillisecond: 1e6 }],
  [0x4d3cb2a1, { littleEndian: true, perMillisecond: 1e6 }],
]);

/**
 * Reads a capture in libpcap's format, as far as it goes: a capture that is still being written may end within a
 * record.
 */
export function readPcap(file: Buffer): Packet[] {
  if (file.length < fileHeader) return [];
  const format = magics.get(file.readUInt32BE(0));
  if (format === undefined) throw new Error(`not a pcap file: it begins with ${file.toString('hex', 0, 4)}`);
  const { littleEndian, perMillisecond } = format;
  const word = (at: number) => (littleEndian ? file.readUInt32LE(at) : file.readUInt32BE(at));
  const linkType = word(20) & 0xffff;
  if (linkType !== linkTypeEthernet)
    throw new Error(`link type ${linkType} where Ethernet (1) is understood`);
  const packets: Packet[] = [];
  let at = fileHeader;
  while (at + recordHeader <= file.length) {
    const captured = word(at + 8);
    const original = word(at + 12);
    const start = at + recordHeader;
    if (start + captured > file.length) break;
    if (captured < original) throw new Error(`${captured} of a packet's ${original} bytes were captured`);
    packets.push({
      at: word(at) * 1e3 + word(at + 4) / perMillisecond,
      bytes: file.subarray(start, start + captured),
    });
    at = start + captured;
  }
  return packets;
}
