import { invalidArgumentValue, outOfRange } from '../errors.js';

/**
 * What the two sides of a negotiating connection tell each other: 20 bytes, big-endian, before the user's
 * private data, in the request and in the reply.
 *
 * | bytes | 0–3    | 4     | 5   | 6   | 7           | 8–9             | 10–11 | 12–15           | 16–19 |
 * | ----- | ------ | ----- | --- | --- | ----------- | --------------- | ----- | --------------- | ----- |
 * |       | p2p, 1 | flags | IRD | ORD | user length | receive credits | 0     | largest message | rkey  |
 */
export interface Header {
  /** Flag A: the active side sends GO, and the passive side waits for it. */
  peerToPeer: boolean;
  /** Flag B: offers or chooses a Send alone as ready-to-receive message. */
  sendRtr: boolean;
  /** Flag C: the same for a 0-byte Write. */
  writeRtr: boolean;
  /** Flag D: the same for a 0-byte Read. */
  readRtr: boolean;
  /** The connection carries credits. */
  flowControl: boolean;
  /** IRD: the Reads that the sender of this header serves at a time. */
  responderResources: number;
  /** ORD: the Reads that the sender of this header has outstanding at a time. */
  initiatorDepth: number;
  /** The receives that the sender of this header has posted. */
  receiveCredits: number;
  /** The largest message that the sender of this header takes, in bytes. */
  maxMessageSize: number;
  /** Key of a region that is used for nothing but the peer's 0-byte Read and Write. */
  rkey: number;
}

export const HEADER_LENGTH = 20;

const MAGIC = [0x70, 0x32, 0x70, 0x01] as const; // 'p2p', version 1

// The meanings of A to D are those of RFC 6581, section 9.
const FLAGS = {
  peerToPeer: 0x80,
  sendRtr: 0x40,
  writeRtr: 0x20,
  readRtr: 0x10,
  flowControl: 0x08,
} as const;

const FLAG_NAMES = Object.keys(FLAGS) as (keyof typeof FLAGS)[];

export type Transport = 'iwarp' | 'roce' | 'infiniband';

/** The message of the connection manager that carries the private data. */
export type PrivateDataMessage = 'connect' | 'accept' | 'reject';

// What InfiniBand's connection manager leaves of its datagrams once rdma_cm has taken its share.
const INFINIBAND_CM = { connect: 56, accept: 196, reject: 148 } as const;

// The kernel's iWARP drivers keep the length in a u8 to which they add their own four bytes of RFC 6581: siw
// lets more than 251 wrap, and the connection then fails with an error that names something else.
const PRIVATE_DATA_LIMITS: Record<Transport, Record<PrivateDataMessage, number>> = {
  iwarp: { connect: 251, accept: 251, reject: 251 },
  roce: INFINIBAND_CM,
  infiniband: INFINIBAND_CM,
};

/** The bytes of private data that are left for the user. */
export function privateDataLimit(
  transport: Transport,
  message: PrivateDataMessage,
  withHeader: boolean,
): number {
  return PRIVATE_DATA_LIMITS[transport][message] - (withHeader ? HEADER_LENGTH : 0);
}

/**
 * Makes the private data of a connect, accept or reject; without a header these are the user's own bytes.
 *
 * @throws TypeError `ERR_INVALID_ARG_VALUE` if the user's data begin like a header
 * @throws RangeError `ERR_OUT_OF_RANGE` if they are longer than `limit`, see {@link privateDataLimit}
 */
export function encodePrivateData(header: Header | null, user: Uint8Array, limit: number): Uint8Array {
  // Refused with a header too, where nothing is ambiguous: whether there is one is for the peer to decide, and
  // a program must not fail with one peer and work with another.
  if (beginsWithMagic(user)) {
    throw invalidArgumentValue(
      'privateData',
      user,
      'must not begin with the bytes 70 32 70 01, which mark the header of a peer-to-peer connection',
    );
  }
  if (user.length > limit) throw outOfRange('privateData.length', `<= ${limit}`, user.length);
  if (header === null) return user;

  const bytes = new Uint8Array(HEADER_LENGTH + user.length);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  let flags = 0;
  for (const name of FLAG_NAMES) {
    if (header[name]) flags |= FLAGS[name];
  }
  view.setUint8(4, flags);
  view.setUint8(5, header.responderResources);
  view.setUint8(6, header.initiatorDepth);
  view.setUint8(7, user.length);
  view.setUint16(8, header.receiveCredits);
  view.setUint32(12, header.maxMessageSize);
  view.setUint32(16, header.rkey);
  bytes.set(user, HEADER_LENGTH);
  return bytes;
}

/**
 * Takes private data apart. What is no header of this version is the user's own data. The length inside decides
 * where the user's data end: RoCE pads them with zeros, and irdma reports four bytes too many.
 */
export function decodePrivateData(bytes: Uint8Array): { header: Header | null; user: Uint8Array } {
  if (bytes.length < HEADER_LENGTH || !beginsWithMagic(bytes)) return { header: null, user: bytes };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = HEADER_LENGTH + view.getUint8(7);
  if (end > bytes.length) return { header: null, user: bytes };
  const flags = view.getUint8(4);
  return {
    header: {
      peerToPeer: (flags & FLAGS.peerToPeer) !== 0,
      sendRtr: (flags & FLAGS.sendRtr) !== 0,
      writeRtr: (flags & FLAGS.writeRtr) !== 0,
      readRtr: (flags & FLAGS.readRtr) !== 0,
      flowControl: (flags & FLAGS.flowControl) !== 0,
      responderResources: view.getUint8(5),
      initiatorDepth: view.getUint8(6),
      receiveCredits: view.getUint16(8),
      maxMessageSize: view.getUint32(12),
      rkey: view.getUint32(16),
    },
    user: bytes.subarray(HEADER_LENGTH, end),
  };
}

function beginsWithMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}
