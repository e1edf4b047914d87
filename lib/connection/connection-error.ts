import { constants } from 'node:os';
import { type CmEvent, eventError } from '../cm/index.js';
import { RdmaError, systemError } from '../errors.js';
import { decodePrivateData } from '../peer-to-peer/header.js';
import { readRejection } from '../peer-to-peer/negotiation.js';
import type { WorkCompletion } from '../verbs/index.js';
import { postFailed } from '../verbs/status.js';
import { interfaceAddresses } from './interface-addresses.js';

const { EADDRINUSE, EBADF, ECONNABORTED, ECONNREFUSED, ECONNRESET, ENOTCONN, ETIMEDOUT } = constants.errno;

/** Reasons of an InfiniBand REJ message, IBTA table 108: what this library tells apart. */
const infinibandReasons = { timeout: 4, invalidServiceId: 8, consumer: 28 } as const;

/** `IBV_WC_WR_FLUSH_ERR` */
const flushError = 5;

/** Whether a request failed because the connection had ended, which is told elsewhere. */
export function wasFlushed({ status, vendorError }: WorkCompletion): boolean {
  if (status === postFailed) return vendorError === ENOTCONN || vendorError === EBADF;
  return status === flushError;
}

export interface Target {
  readonly address: string;
  readonly port: number;
}

function refused(event: CmEvent, errno: number, { address, port }: Target): RdmaError {
  return systemError(errno, 'rdma_connect', { address, port, cause: event });
}

/**
 * The error of a REJECTED event. iWARP gives a negative errno, InfiniBand and RoCE the reason of the REJ message.
 * `negotiating`: the request carried a header, so the peer's data may lie behind one.
 */
export function rejectionError(event: CmEvent, target: Target, negotiating: boolean): RdmaError {
  const { status } = event;
  if (status === infinibandReasons.invalidServiceId || status === -ECONNREFUSED) {
    return refused(event, ECONNREFUSED, target);
  }
  if (status === infinibandReasons.timeout) return refused(event, ETIMEDOUT, target);
  if (status > 0 && status !== infinibandReasons.consumer) return refused(event, ECONNRESET, target);
  const { header, user } = negotiating
    ? decodePrivateData(event.privateData)
    : { header: null, user: event.privateData };
  const { address, port } = target;
  return (
    readRejection(header) ??
    new RdmaError('ERR_RDMA_REJECTED', rejection(address, port, header !== null, user.length), {
      cause: event,
      address,
      port,
      syscall: 'rdma_connect',
      privateData: Buffer.from(user),
    })
  );
}

function rejection(address: string, port: number, answered: boolean, length: number): string {
  const said = `The peer ${address}:${port} rejected the connection`;
  // A server tells a client that it insists on the handshake only if the client has asked for it.
  return answered || length > 0
    ? said
    : `${said}, without a word: it may serve peerToPeer clients alone, or be full`;
}

/** The error of an UNREACHABLE or CONNECT_ERROR event. */
export function connectError(event: CmEvent, { address, port }: Target): RdmaError {
  if (event.name === 'unreachable') return eventError(event, 'rdma_connect', ETIMEDOUT, address, port);
  // siw's status is that of its parser, EINVAL or EPROTO, and says nothing.
  return new RdmaError(
    'ECONNABORTED',
    `rdma_connect ECONNABORTED ${address}:${port} (on iWARP this is also what a peer causes that sends before it ` +
      'has received: see peerToPeer)',
    { cause: event, errno: -ECONNABORTED, syscall: 'rdma_connect', address, port },
  );
}

/**
 * An error of resolving, binding or connecting that does not tell yet what the address was. `rdma_connect()` fails itself
 * on siw, where it makes the TCP connection, and so has its errors.
 */
export function addressError<E>(error: E, { address, port }: Target): E | RdmaError {
  if (!(error instanceof RdmaError) || error.errno === undefined || error.address !== undefined) return error;
  return systemError(error.errno, error.syscall!, { address, port, cause: error });
}

const wildcards = ['0.0.0.0', '::'];

/**
 * The kernel says EADDRNOTAVAIL also of a port that is in use, if either of the two listeners is on all addresses
 * (`cma_check_port()`): then the address itself is there.
 */
export function bindError(error: unknown, { address, port }: Target): unknown {
  const named = addressError(error, { address, port });
  if (!(error instanceof RdmaError) || error.code !== 'EADDRNOTAVAIL' || port === 0) return named;
  const own = interfaceAddresses().some((each) => each.address === address);
  if (!own && !wildcards.includes(address)) return named;
  return systemError(EADDRINUSE, error.syscall!, { address, port, cause: error });
}

/** The error of a connection that the peer, or the network, has ended. */
export function lostError(cause: unknown): RdmaError {
  return new RdmaError('ECONNRESET', 'The connection was lost: the peer has ended it', {
    errno: -ECONNRESET,
    ...(cause === undefined ? {} : { cause }),
  });
}

export function timeoutError(timeout: number, target: Partial<Target>): RdmaError {
  const { address, port } = target;
  const where = address === undefined ? '' : ` ${address}:${port}`;
  return new RdmaError('ETIMEDOUT', `rdma_connect ETIMEDOUT${where} (not established within ${timeout} ms)`, {
    errno: -ETIMEDOUT,
    syscall: 'rdma_connect',
    ...(address === undefined || port === undefined ? {} : { address, port }),
  });
}
