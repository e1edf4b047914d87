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
      const error = rejected(normalizeConnectOptions, { host: 'x', port: 1, [name]: value });
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

  test.each([
    [normalizeConnectOptions, { host: 'x', port: 1, peertopeer: true }, 'options.peertopeer'],
    [normalizeConnectOptions, { host: 'x', port: 1, peerToPeer: { rtrs: 'read' } }, 'peerToPeer.rtrs'],
    [normalizeServerOptions, { signal: AbortSignal.abort() }, 'options.signal'],
    [normalizeListenOptions, { hostname: 'x' }, 'options.hostname'],
  ])('that do not exist are refused, and do not just do nothing', (normalize, options, name) => {
    expect(rejected(normalize, options)).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringContaining(`'${name}' is not an option`),
    });
  });

  test('of a connection need a host, as no RDMA device has a loopback address', () => {
    expect(rejected(normalizeConnectOptions, { port: 1 })).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  });

  test('that ask for more memory than a region can have name the option', () => {
    expect(rejected(normalizeConnectOptions, { host: 'x', port: 1, maxMessageSize: 2 ** 30 })).toMatchObject({
      code: 'ERR_OUT_OF_RANGE',
      message: expect.stringContaining('receiveDepth (64)'),
    });
    const few = { host: 'x', port: 1, maxMessageSize: 2 ** 30, receiveDepth: 2 };
    expect(normalizeConnectOptions(few)).toMatchObject({ maxMessageSize: 2 ** 30 });
  });

  test('of a server take peerToPeer: true as they take it for connect()', () => {
    expect(normalizeServerOptions({ peerToPeer: true })).toMatchObject({ peerToPeer: 'accept' });
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
    const of = (options: object) => normalizeConnectOptions({ host: 'x', port: 1, ...options }).flowControl;
    expect(of({})).toBe(false);
    expect(of({ flowControl: true })).toBe(true);
    expect(of({ peerToPeer: true })).toBe(true);
    expect(of({ peerToPeer: true, flowControl: false })).toBe(false);
    expect(of({ peerToPeer: { negotiate: 'off' } })).toBe(false);
  });

  test('copy private data, which the caller may change afterwards', () => {
    const privateData = Uint8Array.of(1, 2, 3);
    const settings = normalizeConnectOptions({ host: 'x', port: 1, privateData });
    privateData.fill(0);
    expect([...settings.privateData]).toEqual([1, 2, 3]);
  });
});
