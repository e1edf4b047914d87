import { describe, expect, it } from 'vitest';
import {
  decodePrivateData,
  encodePrivateData,
  HEADER_LENGTH,
  type Header,
  privateDataLimit,
} from '#lib/peer-to-peer/header.js';

const flagNames = ['peerToPeer', 'sendRtr', 'writeRtr', 'readRtr', 'flowControl'] as const;

const header: Header = {
  peerToPeer: true,
  sendRtr: true,
  writeRtr: false,
  readRtr: true,
  flowControl: true,
  responderResources: 1,
  initiatorDepth: 16,
  receiveCredits: 64,
  maxMessageSize: 8192,
  rkey: 0xdeadbeef,
};
const user: Uint8Array = Uint8Array.of(1, 2, 3);

/** A small generator with a fixed seed (xorshift32), so that a failure can be repeated. */
function randomBytes(seed: number): (length: number) => Uint8Array {
  let state = seed;
  return (length) =>
    Uint8Array.from({ length }, () => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return state & 0xff;
    });
}

describe('the layout of the header', () => {
  it('is twenty bytes, big-endian, before the data of the user', () => {
    expect([...encodePrivateData(header, user, 231)]).toEqual(
      [
        [0x70, 0x32, 0x70, 1],
        [0x80 | 0x40 | 0x10 | 0x08, 1, 16, 3],
        [0, 64, 0, 0],
        [0, 0, 0x20, 0],
        [0xde, 0xad, 0xbe, 0xef],
        [1, 2, 3],
      ].flat(),
    );
  });

  it('is absent from a connection that does not negotiate', () => {
    expect(encodePrivateData(null, user, 251)).toEqual(user);
    expect(decodePrivateData(user)).toEqual({ header: null, user });
  });
});

describe('a header that is sent and received', () => {
  const roundTrip = (sent: Header, data = user) => decodePrivateData(encodePrivateData(sent, data, 255));

  it('keeps every combination of flags', () => {
    for (let flags = 0; flags < 1 << flagNames.length; flags++) {
      const sent = { ...header };
      for (const [bit, name] of flagNames.entries()) sent[name] = (flags & (1 << bit)) !== 0;
      expect(roundTrip(sent)).toEqual({ header: sent, user });
    }
  });

  it('keeps every depth', () => {
    for (let depth = 0; depth <= 255; depth++) {
      const sent = { ...header, responderResources: depth, initiatorDepth: 255 - depth };
      expect(roundTrip(sent).header).toEqual(sent);
    }
  });

  it('keeps every count of credits', () => {
    for (let receiveCredits = 0; receiveCredits <= 0xffff; receiveCredits++) {
      const received = roundTrip({ ...header, receiveCredits }).header;
      if (received?.receiveCredits !== receiveCredits) expect.fail(`${receiveCredits} was not kept`);
    }
  });

  it('keeps sizes and keys over their whole range', () => {
    for (let bit = 0; bit < 32; bit++) {
      for (const value of [2 ** bit - 1, 2 ** bit, 2 ** 32 - 1 - 2 ** bit, 2 ** 32 - 1]) {
        const sent = { ...header, maxMessageSize: value, rkey: 2 ** 32 - 1 - value };
        expect(roundTrip(sent).header).toEqual(sent);
      }
    }
  });

  it('keeps user data of every length', () => {
    const random = randomBytes(1);
    for (let length = 0; length <= 231; length++) {
      const data = random(length);
      expect(roundTrip(header, data)).toEqual({ header, user: data });
    }
  });

  it('is read from a view in the middle of a buffer', () => {
    const bytes = encodePrivateData(header, user, 231);
    const buffer = new Uint8Array(bytes.length + 7);
    buffer.set(bytes, 5);
    expect(decodePrivateData(buffer.subarray(5, 5 + bytes.length))).toEqual({ header, user });
  });
});

describe('private data from the wire', () => {
  it.each([56, 196, 148])('ends where the header says, though RoCE pads it to %i bytes', (padded) => {
    const bytes = new Uint8Array(padded);
    bytes.set(encodePrivateData(header, user, 36));
    expect(decodePrivateData(bytes)).toEqual({ header, user });
  });

  it('ends where the header says, though irdma reports four bytes too many', () => {
    const bytes = Uint8Array.of(...encodePrivateData(header, user, 231), 9, 9, 9, 9);
    expect(decodePrivateData(bytes)).toEqual({ header, user });
  });

  it('is the own data of the user when it is cut anywhere', () => {
    const bytes = encodePrivateData(header, user, 231);
    for (let length = 0; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length);
      expect(decodePrivateData(cut)).toEqual({ header: null, user: cut });
    }
  });

  it('has a flag that nobody knows ignored, and is sent without it', () => {
    const bytes = encodePrivateData(header, user, 231);
    for (const unknown of [0x01, 0x02, 0x04]) {
      expect((bytes[4] ?? 0) & unknown).toBe(0);
      const flagged = Uint8Array.from(bytes);
      flagged[4] = (flagged[4] ?? 0) | unknown;
      expect(decodePrivateData(flagged)).toEqual({ header, user });
    }
  });

  it('has its reserved bytes ignored', () => {
    const bytes = encodePrivateData(header, user, 231);
    bytes[10] = bytes[11] = 0xff;
    expect(decodePrivateData(bytes)).toEqual({ header, user });
  });

  it('changes, with any one byte, into what that byte means and nothing else', () => {
    const bytes = encodePrivateData(header, user, 231);
    for (let index = 0; index < bytes.length; index++) {
      for (let value = 0; value <= 255; value++) {
        const changed = Uint8Array.from(bytes);
        changed[index] = value;
        const decoded = decodePrivateData(changed);
        const isHeader = (index >= 4 || value === bytes[index]) && (index !== 7 || value <= user.length);
        if (!isHeader) {
          expect(decoded).toEqual({ header: null, user: changed });
          continue;
        }
        const length = index === 7 ? value : user.length;
        expect(decoded.user).toEqual(changed.subarray(HEADER_LENGTH, HEADER_LENGTH + length));
        const again = encodePrivateData(decoded.header, decoded.user, 255);
        const canonical = changed.slice(0, HEADER_LENGTH + length);
        canonical[4] = (canonical[4] ?? 0) & 0xf8;
        canonical[10] = canonical[11] = 0;
        expect(again).toEqual(canonical);
      }
    }
  });

  it('is given to the user untouched when it is random', () => {
    const random = randomBytes(7);
    for (let round = 0; round < 1000; round++) {
      const data = random(round % 252);
      expect(decodePrivateData(encodePrivateData(null, data, 251))).toEqual({ header: null, user: data });
    }
  });
});

describe('data of the user that cannot be sent', () => {
  const magic = Uint8Array.of(0x70, 0x32, 0x70, 1);

  it.each([
    ['without a header', null],
    ['behind a header', header],
  ])('is what begins like a header, %s', (_, sent) => {
    for (const data of [magic, Uint8Array.of(...magic, 5), encodePrivateData(header, user, 231)]) {
      expect(() => encodePrivateData(sent, data, 231)).toThrow(
        expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' }),
      );
    }
  });

  it('is not what merely resembles a header', () => {
    for (const data of [
      magic.subarray(0, 3),
      Uint8Array.of(0x70, 0x32, 0x70, 2),
      Uint8Array.of(0, ...magic),
    ]) {
      expect(decodePrivateData(encodePrivateData(null, data, 251))).toEqual({ header: null, user: data });
    }
  });

  it('is what is longer than the limit', () => {
    for (const sent of [null, header]) {
      expect(encodePrivateData(sent, new Uint8Array(36), 36)).toBeInstanceOf(Uint8Array);
      expect(() => encodePrivateData(sent, new Uint8Array(37), 36)).toThrow(
        expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }),
      );
    }
  });
});

describe('the room for data of the user', () => {
  it.each([
    ['iwarp', 'connect', 251, 231],
    ['iwarp', 'accept', 251, 231],
    ['iwarp', 'reject', 251, 231],
    ['roce', 'connect', 56, 36],
    ['roce', 'accept', 196, 176],
    ['roce', 'reject', 148, 128],
    ['infiniband', 'connect', 56, 36],
    ['infiniband', 'accept', 196, 176],
    ['infiniband', 'reject', 148, 128],
  ] as const)('on %s in a %s is %i bytes, %i behind a header', (transport, message, plain, behindHeader) => {
    expect(privateDataLimit(transport, message, false)).toBe(plain);
    expect(privateDataLimit(transport, message, true)).toBe(behindHeader);
  });
});
