import { isIP } from 'node:net';
import {
  invalidArgumentType,
  invalidArgumentValue,
  outOfRange,
  requireInteger,
  requireKnown,
  requireOptions,
} from '../errors.js';
import {
  normalizeFlowControl,
  normalizePeerToPeer,
  normalizeServerPeerToPeer,
  type PeerToPeer,
  type PeerToPeerOptions,
  type ServerPeerToPeer,
} from '../peer-to-peer/options.js';
import { ProtectionDomain } from '../verbs/index.js';
import { maxDelay, requireSignal } from './cancellation.js';

/** What both ends of a connection can be given. */
export interface ConnectionOptions {
  /** Work requests on their way at once, 1 to 16384; default 128. What is sent beyond waits its turn. */
  sendDepth?: number | undefined;
  /**
   * Receives that are posted, 1 to 16384; default 64. Without flow control the peer must not have more messages on
   * their way: on iWARP one too many ends the connection (RFC 5041 §6.2), on RoCE it is retried.
   */
  receiveDepth?: number | undefined;
  /**
   * Largest message in bytes, both ways, 1 to 1 GiB; default 8192. The peer's may be smaller, and then counts.
   * Memory for `receiveDepth` of them is registered, at most 4 GiB.
   */
  maxMessageSize?: number | undefined;
  /** Bytes that may wait to be sent, default 1 MiB; every waiting request counts 64 more. Beyond: `ERR_RDMA_QUEUE_FULL`. */
  highWaterMark?: number | undefined;
  /** Bytes of received messages that a plain iWARP connection queues for a slow reader; default 16 MiB. */
  maxQueuedBytes?: number | undefined;
  /** RDMA Reads of the peer's that are served at once (IRD), 1 to 255; default 16, or what the device can. */
  responderResources?: number | undefined;
  /** RDMA Reads of this side's that are on their way at once (ORD), 1 to 255; default 16, or what the device can. */
  initiatorDepth?: number | undefined;
  /** Finds a dead peer that the kernel does not report: a 0-byte RDMA Write after so many idle milliseconds. Default: none. */
  keepAlive?: { interval: number } | undefined;
  /** Closes the connection, as `close()` does, after so many milliseconds without traffic. Default: never. */
  idleTimeout?: number | undefined;
  /**
   * `'shared'` (the default): one protection domain for all connections on a device, so a peer that knows a key can
   * reach what was granted to another. `'own'`: one for this connection alone. Or one of the program's own, which
   * stays open.
   */
  protectionDomain?: 'shared' | 'own' | ProtectionDomain | undefined;
  /**
   * The longest that establishing may take, in milliseconds; default 10,000. Then `ETIMEDOUT`. An accepted peer-to-peer
   * connection has as long for its handshake, at least 10,000.
   */
  timeout?: number | undefined;
  /** What the peer gets with the request, or with the answer to it. What fits is in `capabilities()`. */
  privateData?: Uint8Array | undefined;
  /** Destroys the connection when it is aborted, at any time. */
  signal?: AbortSignal | undefined;
}

/** Options of `connect()`. */
export interface ConnectOptions extends ConnectionOptions {
  /** 1 to 65535. */
  port: number;
  /** Name or address of an RDMA device, so never a loopback address. Link-local IPv6 with its scope: `fe80::1%eth0`. */
  host: string;
  /** 4 or 6: which addresses of a name are looked for; default 0, either. */
  family?: 0 | 4 | 6 | undefined;
  /** Address of this host that the connection is made from. */
  localAddress?: string | undefined;
  /**
   * Lets both sides speak first, which on iWARP the accepting side must not do (RFC 5044 §7.1). Default false. Not
   * needed on RoCE and InfiniBand, where it works the same.
   */
  peerToPeer?: boolean | PeerToPeerOptions | undefined;
  /** Credits keep either side from sending more than the other has receives for. Default: with `peerToPeer`. */
  flowControl?: boolean | undefined;
}

/** Options of `createServer()`: those of connections are for all that it accepts. */
export interface ServerOptions extends Omit<ConnectionOptions, 'signal'> {
  /**
   * `'accept'` or `true` (the default) honours a client's request, `'require'` refuses clients without, `false`
   * declines it.
   */
  peerToPeer?: ServerPeerToPeer | true | undefined;
  /** Whether clients that ask for credits get them; default true. */
  flowControl?: boolean | undefined;
  /** Requests beyond so many open connections are rejected; default: no limit. */
  maxConnections?: number | undefined;
}

/** Options of `server.listen()`. */
export interface ListenOptions {
  /** 0 to 65535; default 0, a free port. */
  port?: number | undefined;
  /** Name or address; default `0.0.0.0`, every IPv4 address of every device. */
  host?: string | undefined;
  /** Requests that wait for an answer; default 128. */
  backlog?: number | undefined;
}

/** {@link ConnectionOptions}, checked and complete. */
export interface ConnectionSettings {
  readonly sendDepth: number;
  readonly receiveDepth: number;
  readonly maxMessageSize: number;
  readonly highWaterMark: number;
  readonly maxQueuedBytes: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly keepAliveInterval: number | undefined;
  readonly idleTimeout: number | undefined;
  readonly protectionDomain: 'shared' | 'own' | ProtectionDomain;
  readonly timeout: number;
  readonly privateData: Uint8Array;
  readonly signal: AbortSignal | undefined;
  readonly flowControl: boolean;
}

export interface ConnectSettings extends ConnectionSettings {
  readonly host: string;
  readonly port: number;
  readonly family: 0 | 4 | 6;
  readonly localAddress: string | undefined;
  readonly peerToPeer: PeerToPeer | null;
}

export interface ServerSettings extends ConnectionSettings {
  readonly peerToPeer: ServerPeerToPeer;
  readonly maxConnections: number;
}

export interface ListenSettings {
  readonly host: string;
  readonly port: number;
  readonly backlog: number;
}

/** The numbers of {@link ConnectionSettings}: default, least and most. */
const numbers = {
  sendDepth: [128, 1, 16384],
  receiveDepth: [64, 1, 16384],
  maxMessageSize: [8192, 1, 2 ** 30],
  highWaterMark: [2 ** 20, 0, Number.MAX_SAFE_INTEGER],
  maxQueuedBytes: [2 ** 24, 0, Number.MAX_SAFE_INTEGER],
  responderResources: [16, 1, 255],
  initiatorDepth: [16, 1, 255],
  timeout: [10_000, 1, maxDelay],
} as const;

type NumberName = keyof typeof numbers;

const connectionOptions = [
  ...Object.keys(numbers),
  ...['keepAlive', 'idleTimeout', 'protectionDomain', 'privateData', 'signal'],
];
const connectOptions = [
  ...connectionOptions,
  ...['host', 'port', 'family', 'localAddress', 'peerToPeer', 'flowControl'],
];
const serverOptions = [
  ...connectionOptions.filter((name) => name !== 'signal'),
  ...['peerToPeer', 'flowControl', 'maxConnections'],
];
const listenOptions = ['host', 'port', 'backlog'];

/** What one region can have. */
const longestRegion = 2 ** 32 - 1;

/** More than all that a receive has beside its message, in bytes. */
const receiveOverhead = 128;

/** Only what is absent has a default: null is a mistake. */
function given<T, U>(value: T | undefined, fallback: U): T | U {
  return value === undefined ? fallback : value;
}

function optional(name: string, value: unknown, min: number, max: number): number | undefined {
  return value === undefined ? undefined : requireInteger(name, value, min, max);
}

function requireBytes(name: string, value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw invalidArgumentType(name, 'a Uint8Array', value);
  // The field that counts them has 8 bits; what is left of it depends on the device.
  requireInteger(`${name}.length`, value.length, 0, 255);
  return value.slice();
}

function requireDomain(value: unknown): 'shared' | 'own' | ProtectionDomain {
  if (value === 'shared' || value === 'own' || value instanceof ProtectionDomain) return value;
  throw invalidArgumentType('options.protectionDomain', "'shared', 'own' or a ProtectionDomain", value);
}

function requireKeepAlive(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || value === null || !('interval' in value)) {
    throw invalidArgumentType('options.keepAlive', 'an object with an interval', value);
  }
  return requireInteger('options.keepAlive.interval', value.interval, 1, maxDelay);
}

function requireHost(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidArgumentType(name, 'a string', value);
  if (value === '' || value.includes('\0')) {
    throw invalidArgumentValue(name, value, 'must be a host name or an address');
  }
  return value;
}

function requireObject<T extends object>(value: T | undefined): T {
  if (value === undefined) throw invalidArgumentType('options', 'an object', value);
  return requireOptions('options', value)!;
}

/** Checks the options that `accept()` of a request takes. */
export function requireConnectionOptions(options: ConnectionOptions): void {
  requireOptions('options', options);
  requireKnown('options', options, connectionOptions);
}

/** Checks what both sides can be given; what is missing comes from `defaults`. */
export function normalizeConnectionOptions(
  options: ConnectionOptions,
  flowControl: boolean,
  defaults?: ConnectionSettings,
): ConnectionSettings {
  const number = (name: NumberName) => {
    const [fallback, min, max] = numbers[name];
    return requireInteger(`options.${name}`, given(options[name], defaults?.[name] ?? fallback), min, max);
  };
  const [receiveDepth, maxMessageSize] = [number('receiveDepth'), number('maxMessageSize')];
  if ((receiveDepth + 1) * (maxMessageSize + receiveOverhead) > longestRegion) {
    throw outOfRange(
      'options.maxMessageSize',
      `such that receiveDepth (${receiveDepth}) messages of it take less than 4 GiB`,
      maxMessageSize,
    );
  }
  return {
    sendDepth: number('sendDepth'),
    receiveDepth,
    maxMessageSize,
    highWaterMark: number('highWaterMark'),
    maxQueuedBytes: number('maxQueuedBytes'),
    responderResources: number('responderResources'),
    initiatorDepth: number('initiatorDepth'),
    timeout: number('timeout'),
    keepAliveInterval: requireKeepAlive(options.keepAlive) ?? defaults?.keepAliveInterval,
    idleTimeout: optional('options.idleTimeout', options.idleTimeout, 1, maxDelay) ?? defaults?.idleTimeout,
    protectionDomain: requireDomain(given(options.protectionDomain, defaults?.protectionDomain ?? 'shared')),
    privateData: requireBytes(
      'options.privateData',
      given(options.privateData, defaults?.privateData ?? new Uint8Array(0)),
    ),
    signal: requireSignal('options.signal', options.signal),
    flowControl,
  };
}

/** @throws TypeError `ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`; RangeError `ERR_OUT_OF_RANGE` */
export function normalizeConnectOptions(value: ConnectOptions): ConnectSettings {
  const options = requireObject(value);
  requireKnown('options', options, connectOptions);
  const { family = 0, localAddress } = options;
  if (family !== 0 && family !== 4 && family !== 6) {
    throw invalidArgumentValue('options.family', family, 'must be 0, 4 or 6');
  }
  if (localAddress !== undefined && (typeof localAddress !== 'string' || isIP(localAddress) === 0)) {
    throw invalidArgumentValue('options.localAddress', localAddress, 'must be a numeric IP address');
  }
  const peerToPeer = normalizePeerToPeer(options.peerToPeer);
  const flowControl = normalizeFlowControl(options.flowControl, peerToPeer);
  return {
    ...normalizeConnectionOptions(options, flowControl),
    port: requireInteger('options.port', options.port, 1, 65535),
    family,
    localAddress,
    peerToPeer,
    host: requireHost('options.host', options.host),
  };
}

/** @throws as {@link normalizeConnectOptions} */
export function normalizeServerOptions(value: ServerOptions = {}): ServerSettings {
  const options = requireObject(value);
  requireKnown('options', options, serverOptions);
  const { flowControl = true, maxConnections } = options;
  if (typeof flowControl !== 'boolean') {
    throw invalidArgumentType('options.flowControl', 'a boolean', flowControl);
  }
  return {
    ...normalizeConnectionOptions(options, flowControl),
    peerToPeer: normalizeServerPeerToPeer(options.peerToPeer),
    maxConnections:
      optional('options.maxConnections', maxConnections, 0, Number.MAX_SAFE_INTEGER) ??
      Number.MAX_SAFE_INTEGER,
  };
}

/** @throws as {@link normalizeConnectOptions} */
export function normalizeListenOptions(value: ListenOptions = {}): ListenSettings {
  const options = requireObject(value);
  requireKnown('options', options, listenOptions);
  const { port = 0, host = '0.0.0.0', backlog = 128 } = options;
  return {
    host: requireHost('options.host', host),
    port: requireInteger('options.port', port, 0, 65535),
    backlog: requireInteger('options.backlog', backlog, 1, 0x7fff_ffff),
  };
}
