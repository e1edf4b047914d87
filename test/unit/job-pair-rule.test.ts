import { describe, expect, test } from 'vitest';
import {
  decodeIntroduction,
  decodeRefusal,
  encodeIntroduction,
  encodeRefusal,
} from '#lib/job/introduction.js';
import { initiates } from '#lib/job/mesh.js';
import { judgeRequest } from '#lib/job/pair-rule.js';
import { decodeCard, encodeCard } from '#lib/job/rank-address.js';

const state = (over: object) => ({
  self: 1,
  peer: 2,
  generation: 0,
  asking: false,
  connected: false,
  ...over,
});

describe('a request of another rank', () => {
  test('is accepted when there is nothing between the two', () => {
    expect(judgeRequest(state({}), 0)).toBe('accept');
  });

  test('of two that cross, that of the lower rank counts, as both sides see it', () => {
    for (const [self, peer] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const here = judgeRequest(state({ self, peer, asking: true }), 0);
      const there = judgeRequest(state({ self: peer, peer: self, asking: true }), 0);
      expect([here, there].toSorted()).toEqual(['accept', 'superseded']);
      expect(here).toBe(self < peer ? 'superseded' : 'accept');
    }
  });

  test('that has crossed the one that made the connection is sent away', () => {
    expect(judgeRequest(state({ connected: true }), 0)).toBe('superseded');
    expect(judgeRequest(state({ connected: true, generation: 3 }), 3)).toBe('superseded');
  });

  test('that knows of the end of a connection replaces it', () => {
    expect(judgeRequest(state({ connected: true }), 1)).toBe('replace');
    expect(judgeRequest(state({ asking: true }), 1)).toBe('accept');
  });

  test('that does not know of a later connection is stale', () => {
    for (const connected of [true, false]) {
      expect(judgeRequest(state({ connected, generation: 2 }), 1)).toBe('stale');
    }
  });
});

describe('an introduction', () => {
  const introduction = { token: Buffer.from('01234567'), rank: 0xffff_ffff, generation: 7 };

  test('fits into the private data of RoCE, and comes out as it went in', () => {
    const bytes = encodeIntroduction(introduction);
    expect(bytes.length).toBeLessThanOrEqual(36);
    expect(decodeIntroduction(Buffer.concat([bytes, Buffer.alloc(9)]))).toEqual(introduction);
  });

  test('is nothing that is shorter, or begins otherwise', () => {
    const bytes = Buffer.from(encodeIntroduction(introduction));
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeIntroduction(bytes.subarray(0, length))).toBeNull();
    }
    bytes[0]! ^= 1;
    expect(decodeIntroduction(bytes)).toBeNull();
  });
});

test('a refusal comes out as it went in, and other data is none', () => {
  for (const reason of ['superseded', 'stale'] as const) {
    expect(decodeRefusal(encodeRefusal({ reason, generation: 9 }))).toEqual({ reason, generation: 9 });
  }
  for (const bytes of [undefined, new Uint8Array(0), new Uint8Array(9), Buffer.from('ranKxxxx\x07')]) {
    expect(decodeRefusal(bytes)).toBeNull();
  }
});

test.each([2, 3, 4, 7, 16])(
  'of each pair of %i ranks one asks the other, and all ask about as many',
  (size) => {
    const asked = Array.from({ length: size }, (_, self) => {
      let count = 0;
      for (let other = 0; other < size; other++) {
        if (other === self) continue;
        expect(initiates(self, other, size)).not.toBe(initiates(other, self, size));
        if (initiates(self, other, size)) count++;
      }
      return count;
    });
    expect(Math.max(...asked) - Math.min(...asked)).toBeLessThanOrEqual(1);
  },
);

describe('the card of a rank', () => {
  test('comes out as it went in', () => {
    const card = { token: '0011', addresses: [{ address: 'fd00::1', port: 5 }] };
    expect(decodeCard(encodeCard(card))).toEqual(card);
  });

  test.each([
    '',
    '{}',
    '{"token":1,"addresses":[]}',
    '{"token":"x","addresses":[{"address":"x","port":1}]}',
    'null',
  ])('is not %s', (text) => {
    expect(() => decodeCard(Buffer.from(text))).toThrow(Error);
  });
});
