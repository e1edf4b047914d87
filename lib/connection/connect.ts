import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type CmEvent, CmId } from '../cm/index.js';
import { RdmaError } from '../errors.js';
import {
  decodePrivateData,
  encodePrivateData,
  type Header,
  privateDataLimit,
} from '../peer-to-peer/header.js';
import { makeOffer, readAnswer } from '../peer-to-peer/negotiation.js';
import { maxDelay } from './cancellation.js';
import { Connection } from './connection.js';
import { addressError, connectError, lostError, rejectionError, type Target } from './connection-error.js';
import { Endpoint } from './endpoint.js';
import { ActiveDriver } from './handshake-driver.js';
import type { Link } from './link.js';
import { type ConnectOptions, type ConnectSettings, normalizeConnectOptions } from './options.js';
import { ChannelShare } from './shared-channel.js';
import { canRead, termsOf } from './terms.js';

/**
 * How often InfiniBand and RoCE repeat what is not acknowledged. With 7, the most, rxe never gives up (`rxe_comp.c` takes
 * it for RNR's 7, which means for ever), and a peer that is gone would be found by nobody.
 */
const retryCount = 6;

/** Milliseconds. */
const firstResolveTimeout = 250;

/**
 * Connects to a server: `rdma_connect(3)` and all that has to come before it. The connection is returned at once and
 * can be written to at once; what is sent waits until it can be.
 *
 * ```js
 * const connection = connect({ host: '10.0.0.1', port: 7471, peerToPeer: true });
 * await connection.send(Buffer.from('hello'));
 * for await (const message of connection) console.log(message.toString());
 * ```
 *
 * Fails with `ECONNREFUSED`, `ERR_RDMA_REJECTED` (which carries the server's data as `privateData`), `ETIMEDOUT`,
 * `EHOSTUNREACH`, `ENODEV`, the codes of `dns.lookup()`, and those of the peer-to-peer handshake:
 * `ERR_RDMA_PEER_TO_PEER_UNSUPPORTED`, `…_REQUIRED` and `…_TIMEOUT`. A client without `peerToPeer` or `flowControl` is
 * rejected by a server that insists on the handshake with `ERR_RDMA_REJECTED`.
 *
 * @throws at once for invalid options, and `ERR_RDMA_UNAVAILABLE` on a host without the RDMA libraries
 */
export function connect(options: ConnectOptions): Connection {
  const settings = normalizeConnectOptions(options);
  const connection = new Connection(settings, new ChannelShare());
  const link = connection.link;
  establish(link, settings).catch((error: Error) => link.end(error));
  return connection;
}

async function establish(link: Link, settings: ConnectSettings): Promise<void> {
  const { host, port, family, localAddress, timeout } = settings;
  const address = isIP(host) === 0 ? (await lookup(host, { family })).address : host;
  link.addresses = { remoteAddress: address, remotePort: port };
  if (link.ended) return;

  const id = new CmId(link.share.channel);
  link.adoptId(id);
  await resolveAddress(link, id, { address, port }, localAddress);
  await id.resolveRoute({ timeout });
  if (link.ended) return;

  const negotiating = settings.flowControl || (settings.peerToPeer?.negotiate ?? 'off') !== 'off';
  const endpoint = await Endpoint.create(id, settings, negotiating);
  if (link.ended) return endpoint.dispose();
  link.adoptEndpoint(endpoint);
  new ActiveSide(link, id, endpoint, settings, { address, port }).connect();
}

/**
 * `rdma_resolve_addr(3)`, again and again until the connection's own time-out. The kernel misses the answer of a
 * neighbour that is faster than its book-keeping (`addr.c` queues the request after it has asked), and looks again
 * only at the end of the time that it was given.
 */
async function resolveAddress(
  link: Link,
  id: CmId,
  destination: Target,
  localAddress: string | undefined,
): Promise<void> {
  const source = localAddress === undefined ? {} : { source: { address: localAddress, port: 0 } };
  for (let timeout = firstResolveTimeout; ; timeout = Math.min(2 * timeout, maxDelay)) {
    try {
      await id.resolveAddress(destination, { ...source, timeout });
      return;
    } catch (error) {
      if (link.ended || !(error instanceof RdmaError) || error.code !== 'ETIMEDOUT') {
        throw addressError(error, destination);
      }
    }
  }
}

/** The last step: from the call of `rdma_connect()` to what the peer says to it. */
class ActiveSide {
  readonly #link: Link;
  readonly #id: CmId;
  readonly #endpoint: Endpoint;
  readonly #settings: ConnectSettings;
  readonly #target: Target;
  readonly #driver: ActiveDriver;
  readonly #offer: Header | null;

  constructor(link: Link, id: CmId, endpoint: Endpoint, settings: ConnectSettings, target: Target) {
    this.#link = link;
    this.#id = id;
    this.#endpoint = endpoint;
    this.#settings = settings;
    this.#target = target;
    this.#driver = new ActiveDriver(settings.peerToPeer, endpoint.transport, link);
    this.#offer = makeOffer(settings.peerToPeer, termsOf(endpoint, settings));
  }

  connect(): void {
    const { privateData } = this.#settings;
    const limit = privateDataLimit(this.#endpoint.transport, 'connect', this.#offer !== null);
    const bytes = encodePrivateData(this.#offer, privateData, limit);
    this.#id.on('established', (event) => this.#established(event));
    this.#id.on('rejected', (event) => {
      // A server that dies before it has this side's RTU rejects what is established here (InfiniBand, RoCE).
      if (this.#link.state === 'connecting') {
        this.#link.end(rejectionError(event, this.#target, this.#offer !== null));
      } else {
        this.#link.end(lostError(event));
      }
    });
    this.#id.on('unreachable', (event) => this.#link.end(connectError(event, this.#target)));
    this.#id.on('connect-error', (event) => this.#link.end(connectError(event, this.#target)));
    this.#link.adoptDriver(this.#driver);
    this.#driver.connecting();
    const { responderResources, initiatorDepth } = this.#endpoint;
    const call = this.#id.connect({
      responderResources,
      initiatorDepth,
      retryCount,
      ...(bytes.length === 0 ? {} : { privateData: bytes }),
    });
    this.#link.connecting(call);
    call.catch((error: Error) => this.#link.end(addressError(error, this.#target)));
  }

  #established(event: CmEvent): void {
    if (this.#link.ended) return;
    const { header, user } =
      this.#offer === null ? { header: null, user: event.privateData } : decodePrivateData(event.privateData);
    const answer = readAnswer(this.#offer, header, this.#settings.peerToPeer);
    if ('error' in answer) {
      this.#link.end(answer.error);
      return;
    }
    this.#link.peerData = Buffer.from(user);
    this.#link.agree(answer.agreement, canRead(event));
    this.#driver.established(answer.agreement, event.initiatorDepth, event.responderResources);
    this.#link.receives.start();
  }
}
