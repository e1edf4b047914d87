import type { Packet } from './pcap.js';

export interface TcpSegment {
  readonly at: number;
  /** `address:port`, an IPv6 address in brackets and in full. */
  readonly source: string;
  readonly destination: string;
  readonly sequence: number;
  readonly syn: boolean;
  readonly fin: boolean;
  readonly rst: boolean;
  readonly payload: Buffer;
}

const ethernetHeader = 14;
const etherTypeIpv4 = 0x0800;
const etherTypeIpv6 = 0x86dd;
const ipv6Header = 40;
const protocolTcp = 6;

/** The TCP segment in an Ethernet packet; null if there is none. */
export function readTcpSegment({ at, bytes }: Packet): TcpSegment | null {
  const ip = bytes.subarray(ethernetHeader);
  switch (bytes.readUInt16BE(12)) {
    case etherTypeIpv4: {
      if (ip.readUInt8(9) !== protocolTcp) return null;
      // More fragments, or not the first: TCP does path MTU discovery, its segments come whole.
      if (ip.readUInt16BE(6) & 0x3fff) throw new Error('a TCP segment in IPv4 fragments');
      // The total length, not the frame's: Ethernet pads short frames.
      const tcp = ip.subarray((ip.readUInt8(0) & 0x0f) * 4, ip.readUInt16BE(2));
      return readTcp(at, tcp, ipv4Address(ip, 12), ipv4Address(ip, 16));
    }
    case etherTypeIpv6: {
      // Extension headers do not occur: neither siw nor TCP sets any.
      if (ip.readUInt8(6) !== protocolTcp) return null;
      const tcp = ip.subarray(ipv6Header, ipv6Header + ip.readUInt16BE(4));
      return readTcp(at, tcp, ipv6Address(ip, 8), ipv6Address(ip, 24));
    }
    default:
      return null;
  }
}

function readTcp(at: number, tcp: Buffer, source: string, destination: string): TcpSegment {
  const flags = tcp.readUInt8(13);
  return {
    at,
    source: `${source}:${tcp.readUInt16BE(0)}`,
    destination: `${destination}:${tcp.readUInt16BE(2)}`,
    sequence: tcp.readUInt32BE(4),
    fin: (flags & 0x01) !== 0,
    syn: (flags & 0x02) !== 0,
    rst: (flags & 0x04) !== 0,
    payload: tcp.subarray((tcp.readUInt8(12) >> 4) * 4),
  };
}

function ipv4Address(ip: Buffer, at: number): string {
  return [...ip.subarray(at, at + 4)].join('.');
}

function ipv6Address(ip: Buffer, at: number): string {
  const groups = Array.from({ length: 8 }, (_, group) => ip.readUInt16BE(at + 2 * group).toString(16));
  return `[${groups.join(':')}]`;
}
