import { isIP } from 'node:net';
import type { NativeConnectionParameters } from '../binding/cm.js';
import { invalidArgumentType, invalidArgumentValue, requireInteger, requireOptions } from '../errors.js';
import { QueuePair } from '../verbs/queue-pair.js';

/** Where a cm_id can go: a numeric address, IPv6 link-local with its scope (`fe80::1%eth0`), and a port. */
export interface CmAddress {
  address: string;
  /** 0 to 65535; 0 lets the kernel choose. */
  port: number;
}

/** What both sides of a connection ask for or offer: `rdma_connect(3)`, `struct rdma_conn_param`. */
export interface ConnectionParameters {
  /** RDMA Reads and atomics that this side will answer at once (IRD), 0 to 255; default 1. */
  responderResources?: number;
  /** RDMA Reads and atomics that this side will have outstanding (ORD), 0 to 255; default 1. */
  initiatorDepth?: number;
  /** Hardware flow control; default false. Ignored on iWARP. */
  flowControl?: boolean;
  /** Retries of a lost packet, 0 to 7; default 7. Ignored on iWARP. */
  retryCount?: number;
  /** Retries when the peer has no receive posted, 0 to 7 where 7 is for ever; default 7. Ignored on iWARP. */
  rnrRetryCount?: number;
  /**
   * What the peer's event carries; at most what the transport takes (see `DeviceCapabilities`), in the port spaces of
   * datagrams 180 bytes to connect and 136 to accept or reject.
   */
  privateData?: Uint8Array;
  /**
   * A queue pair that was not made on the id. Its owner brings it up with `CmId.queuePairAttributes()` and
   * `QueuePair.modify()`; the active side then gets `connect-response` and calls `CmId.establish()`.
   * `ENOTSUP` on iWARP, where the connection itself brings the queue pair up. Default: the one made on the id.
   */
  queuePair?: QueuePair;
}

export function checkAddress(name: string, value: CmAddress): CmAddress {
  if (typeof value !== 'object' || value === null) {
    throw invalidArgumentType(name, 'an object with address and port', value);
  }
  const { address, port } = value;
  return {
    address: checkNumericAddress(`${name}.address`, address),
    port: requireInteger(`${name}.port`, port, 0, 65535),
  };
}

export function checkNumericAddress(name: string, address: string): string {
  if (typeof address !== 'string') throw invalidArgumentType(name, 'a string', address);
  if (isIP(address) === 0) throw invalidArgumentValue(name, address, 'must be a numeric IP address');
  return address;
}

export function checkPrivateData(privateData: unknown): Uint8Array | null {
  if (privateData === undefined) return null;
  if (!(privateData instanceof Uint8Array)) {
    throw invalidArgumentType('privateData', 'a Uint8Array', privateData);
  }
  requireInteger('privateData.length', privateData.length, 0, 255);
  return privateData;
}

export function checkParameters(parameters: ConnectionParameters): NativeConnectionParameters {
  requireOptions('parameters', parameters);
  const depth = (name: 'responderResources' | 'initiatorDepth') =>
    requireInteger(`parameters.${name}`, parameters[name] ?? 1, 0, 255);
  const retries = (name: 'retryCount' | 'rnrRetryCount') =>
    requireInteger(`parameters.${name}`, parameters[name] ?? 7, 0, 7);
  const { queuePair } = parameters;
  if (queuePair !== undefined && !(queuePair instanceof QueuePair)) {
    throw invalidArgumentType('parameters.queuePair', 'a QueuePair', queuePair);
  }
  return {
    responderResources: depth('responderResources'),
    initiatorDepth: depth('initiatorDepth'),
    flowControl: parameters.flowControl === true ? 1 : 0,
    retryCount: retries('retryCount'),
    rnrRetryCount: retries('rnrRetryCount'),
    privateData: checkPrivateData(parameters.privateData),
    queuePair: queuePair?.handle ?? 0,
  };
}
