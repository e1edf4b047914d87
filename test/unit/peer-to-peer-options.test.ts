import { describe, expect, it } from 'vitest';
import {
  normalizeFlowControl,
  normalizePeerToPeer,
  normalizeServerPeerToPeer,
} from '#lib/peer-to-peer/options.js';

const typeError = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });
const valueError = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' });
const rangeError = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' });

describe('peerToPeer of connect()', () => {
  it('is off by default', () => {
    expect(normalizePeerToPeer(undefined)).toBeNull();
    expect(normalizePeerToPeer(false)).toBeNull();
  });

  it('has the same defaults as true and as an empty object', () => {
    const defaults = { rtr: 'read', negotiate: 'prefer', timeout: 10_000 };
    expect(normalizePeerToPeer(true)).toEqual(defaults);
    expect(normalizePeerToPeer({})).toEqual(defaults);
    expect(normalizePeerToPeer({ rtr: undefined, negotiate: undefined, timeout: undefined })).toEqual(
      defaults,
    );
  });

  it('keeps what it is given', () => {
    const given = { rtr: 'write', negotiate: 'require', timeout: 5 };
    expect(normalizePeerToPeer(given)).toEqual(given);
  });

  it.each([null, 1, 'read', [], () => {}, Symbol('s'), 1n])('is no %s', (value) => {
    expect(() => normalizePeerToPeer(value)).toThrow(typeError);
  });

  it.each([
    [{ rtr: 1 }, typeError],
    [{ rtr: null }, typeError],
    [{ rtr: 'go' }, valueError],
    [{ negotiate: true }, typeError],
    [{ negotiate: 'maybe' }, valueError],
    [{ timeout: '5' }, typeError],
    [{ timeout: 5n }, typeError],
    [{ timeout: 0 }, rangeError],
    [{ timeout: -1 }, rangeError],
    [{ timeout: 1.5 }, rangeError],
    [{ timeout: Number.NaN }, rangeError],
    [{ timeout: Number.POSITIVE_INFINITY }, rangeError],
    [{ timeout: 2 ** 31 }, rangeError],
  ])('refuses %o', (value, error) => {
    expect(() => normalizePeerToPeer(value)).toThrow(error);
  });

  it("refuses rtr: 'send' without negotiation, as a foreign peer would take GO for a message", () => {
    expect(() => normalizePeerToPeer({ rtr: 'send', negotiate: 'off' })).toThrow(valueError);
  });
});

describe('peerToPeer of createServer()', () => {
  it('honours a request by default, and when it is true as for connect()', () => {
    expect(normalizeServerPeerToPeer(undefined)).toBe('accept');
    expect(normalizeServerPeerToPeer(true)).toBe('accept');
  });

  it.each(['accept', 'require', false] as const)('may be %s', (value) => {
    expect(normalizeServerPeerToPeer(value)).toBe(value);
  });

  it.each([
    [1, typeError],
    [null, typeError],
    [{}, typeError],
    [Symbol('s'), typeError],
    ['prefer', valueError],
  ])('refuses %o', (value, error) => {
    expect(() => normalizeServerPeerToPeer(value)).toThrow(error);
  });
});

describe('flowControl of connect()', () => {
  const on = normalizePeerToPeer(true);
  const off = normalizePeerToPeer({ negotiate: 'off' });

  it('follows peerToPeer unless it is given', () => {
    expect(normalizeFlowControl(undefined, null)).toBe(false);
    expect(normalizeFlowControl(undefined, on)).toBe(true);
    expect(normalizeFlowControl(undefined, off)).toBe(false);
  });

  it('may be on without peerToPeer and off with it', () => {
    expect(normalizeFlowControl(true, null)).toBe(true);
    expect(normalizeFlowControl(false, on)).toBe(false);
    expect(normalizeFlowControl(false, off)).toBe(false);
  });

  it('cannot be on where no header is sent', () => {
    expect(() => normalizeFlowControl(true, off)).toThrow(valueError);
  });

  it.each([null, 1, 'on', {}])('is no %o', (value) => {
    expect(() => normalizeFlowControl(value, on)).toThrow(typeError);
  });
});
