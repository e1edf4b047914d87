import {
  invalidArgumentType,
  invalidArgumentValue,
  requireInteger,
  requireKnown,
  requireOneOf,
} from '../errors.js';

/** The first work request of the active side, by which the passive side may begin to send. */
export type Rtr = 'read' | 'write' | 'send';

/** Whether the peer is asked to take part in the handshake, and what happens if it does not. */
export type Negotiate = 'require' | 'prefer' | 'off';

/** The `peerToPeer` option of `connect()`; `true` stands for all the defaults, `false` is the default. */
export interface PeerToPeerOptions {
  /**
   * `'read'` (the default) costs one round trip before sends flow and proves the path to this side; `'write'`
   * and `'send'` cost none.
   */
  rtr?: Rtr | undefined;
  /**
   * Whether the peer is asked to take part. `'prefer'` (the default) carries on with a peer that does not answer,
   * `'require'` fails with `ERR_RDMA_PEER_TO_PEER_UNSUPPORTED`, `'off'` does not ask.
   */
  negotiate?: Negotiate | undefined;
  /** The longest that the handshake may take once the connection is established, in milliseconds: 10,000. */
  timeout?: number | undefined;
}

/** {@link PeerToPeerOptions} with every default filled in. */
export interface PeerToPeer {
  readonly rtr: Rtr;
  readonly negotiate: Negotiate;
  readonly timeout: number;
}

/** The `peerToPeer` option of `createServer()`: honour a request for it, insist on one, or decline. */
export type ServerPeerToPeer = 'accept' | 'require' | false;

export const DEFAULT_TIMEOUT = 10_000;

const MAX_TIMEOUT = 2 ** 31 - 1; // setTimeout() fires at once beyond it

/**
 * Checks the `peerToPeer` option of `connect()`: null if it is off.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`; RangeError `ERR_OUT_OF_RANGE`
 */
export function normalizePeerToPeer(value: unknown): PeerToPeer | null {
  if (value === undefined || value === false) return null;
  if (value !== true && (typeof value !== 'object' || value === null || Array.isArray(value))) {
    throw invalidArgumentType('peerToPeer', 'a boolean or an object', value);
  }
  if (value !== true) requireKnown('peerToPeer', value, ['rtr', 'negotiate', 'timeout']);
  const {
    rtr = 'read',
    negotiate = 'prefer',
    timeout = DEFAULT_TIMEOUT,
  } = (value === true ? {} : value) as { readonly [key in keyof PeerToPeerOptions]: unknown };
  const options: PeerToPeer = {
    rtr: requireOneOf('peerToPeer.rtr', rtr, ['read', 'write', 'send']),
    negotiate: requireOneOf('peerToPeer.negotiate', negotiate, ['require', 'prefer', 'off']),
    timeout: requireInteger('peerToPeer.timeout', timeout, 1, MAX_TIMEOUT),
  };
  if (options.rtr === 'send' && options.negotiate === 'off') {
    throw invalidArgumentValue(
      'peerToPeer.rtr',
      rtr,
      "needs a peer that was told of it: with negotiate: 'off' it must be 'read' or 'write'",
    );
  }
  return options;
}

/**
 * Checks the `peerToPeer` option of `createServer()`.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`
 */
export function normalizeServerPeerToPeer(value: unknown): ServerPeerToPeer {
  if (value === undefined || value === true) return 'accept';
  if (value === false || value === 'accept' || value === 'require') return value;
  const expected = "'accept', 'require' or a boolean";
  if (typeof value !== 'string') throw invalidArgumentType('peerToPeer', expected, value);
  throw invalidArgumentValue('peerToPeer', value, `must be ${expected}`);
}

/**
 * Checks the `flowControl` option of `connect()`, which follows `peerToPeer` unless it is given: credits need the
 * header.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`
 */
export function normalizeFlowControl(value: unknown, peerToPeer: PeerToPeer | null): boolean {
  const headerless = peerToPeer?.negotiate === 'off';
  if (value === undefined) return peerToPeer !== null && !headerless;
  if (typeof value !== 'boolean') throw invalidArgumentType('flowControl', 'a boolean', value);
  if (value && headerless) {
    throw invalidArgumentValue(
      'flowControl',
      value,
      "must not be true with peerToPeer.negotiate: 'off', under which the peer is not asked for credits",
    );
  }
  return value;
}
