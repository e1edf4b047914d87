import { describe, expect, test } from 'vitest';
import {
  normalizeConnectOptions,
  normalizeListenOptions,
  normalizeServerOptions,
} from '#lib/connection/options.js';

/** What no option takes, except for these. */
const empty = {};
const wrong = [null, Number.NaN, -1, 1.5, empty, [], 'x', true, Symbol('x'), () => {}, 10n];
const exceptions: Record<string, unknown[]> = { host: ['x'], peerToPeer: [true, empty], flowControl: [true] };

const connectOptions = [
  'port',
  'host',
  'family',
  'localAddress',
  'timeout',
  'signal',
  'privateData',
  'sendDepth',
  'receiveDepth',
  'maxMessageSize',
  'highWaterMark',
  'maxQueuedBytes',
  'responderResources',
  'initiatorDepth',
  'keepAlive',
  'idleTimeout',
  'protectionDomain',
  'peerToPeer',
  'flowControl',
];

const code = expect.stringMatching(/^ERR_(INVALID_ARG_TYPE|INVALID_ARG_VALUE|OUT_OF_RANGE)$/);

function rejected(normalize: (value: never) => unknown, value: unknown): unknown {
  try {
    normalize(value as never);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('options', () => {
  test.each(connectOptions)('of connect() refuse every wrong %s with a coded error', (name) => {
    for (const value of wrong) {
      if (exceptions[name]?.includes(value)) continue;
      const error = rejected(normalizeConnectOptions, { port: 1, [name]: value });
      expect(error, `${name}: ${String(value)}`).toMatchObject({ code });
    }
  });

  test.each([undefined, null, 5, 'x', [], () => {}])('refuse %s in the place of an object', (value) => {
    expect(rejected(normalizeConnectOptions, value)).toMatchObject({ code });
    if (value !== undefined) {
      expect(rejected(normalizeServerOptions, value)).toMatchObject({ code });
      expect(rejected(normalizeListenOptions, value)).toMatchObject({ code });
    }
  });

  test('of a server are complete without any', () => {
    expect(normalizeServerOptions(undefined)).toMatchObject({
      sendDepth: 128,
      receiveDepth: 64,
      maxMessageSize: 8192,
      peerToPeer: 'accept',
      flowControl: true,
    });
    expect(normalizeListenOptions(undefined)).toEqual({ host: '0.0.0.0', port: 0, backlog: 128 });
  });

  test('give credits to peer-to-peer connections and to those that ask', () => {
    const of = (options: object) => normalizeConnectOptions({ port: 1, ...options }).flowControl;
    expect(of({})).toBe(false);
    expect(of({ flowControl: true })).toBe(true);
    expect(of({ peerToPeer: true })).toBe(true);
    expect(of({ peerToPeer: true, flowControl: false })).toBe(false);
    expect(of({ peerToPeer: { negotiate: 'off' } })).toBe(false);
  });

  test('copy private data, which the caller may change afterwards', () => {
    const privateData = Uint8Array.of(1, 2, 3);
    const settings = normalizeConnectOptions({ port: 1, privateData });
    privateData.fill(0);
    expect([...settings.privateData]).toEqual([1, 2, 3]);
  });
});
