import type { CmEvent, CmId } from '../cm/index.js';
import { RdmaError } from '../errors.js';
import { encodePrivateData, type Header, privateDataLimit } from '../peer-to-peer/header.js';
import { answerOffer, makeRejection } from '../peer-to-peer/negotiation.js';
import { DEFAULT_TIMEOUT, type ServerPeerToPeer } from '../peer-to-peer/options.js';
import { connectError, type Target } from './connection-error.js';
import { Endpoint } from './endpoint.js';
import { PassiveDriver } from './handshake-driver.js';
import type { Link } from './link.js';
import type { ConnectionSettings } from './options.js';
import { canRead, termsOf } from './terms.js';

/** A request as it came in. */
export interface IncomingRequest {
  readonly id: CmId;
  readonly event: CmEvent;
  /** The header before the client's private data, if there was one. */
  readonly offer: Header | null;
  /** The client's private data, without the header. */
  readonly privateData: Buffer;
}

/** `rdma_accept(3)`, or a reject where the two sides can't agree. */
export async function accept(
  link: Link,
  { id, event, offer }: IncomingRequest,
  settings: ConnectionSettings,
  peerToPeer: ServerPeerToPeer,
): Promise<void> {
  link.adoptId(id);
  const endpoint = await Endpoint.create(id, settings, offer !== null);
  if (link.ended) return endpoint.dispose();
  // Before the accept: GO, and more, can be there before this side's ESTABLISHED.
  link.adoptEndpoint(endpoint);
  const { transport } = endpoint;
  const reply = answerOffer(offer, peerToPeer, termsOf(endpoint, settings));
  if ('error' in reply) {
    const limit = privateDataLimit(transport, 'reject', true);
    rejectId(id, encodePrivateData(reply.answer, new Uint8Array(0), limit));
    link.end(reply.error);
    return;
  }
  const limit = privateDataLimit(transport, 'accept', reply.answer !== null);
  const privateData = encodePrivateData(reply.answer, settings.privateData, limit);

  const driver = new PassiveDriver(
    {
      requested: offer?.peerToPeer ?? false,
      agreement: reply.agreement,
      transport,
      timeout: Math.max(DEFAULT_TIMEOUT, settings.timeout),
    },
    link,
  );
  const target: Target = { address: id.info.remoteAddress, port: id.info.remotePort };
  id.on('established', () => driver.established());
  id.on('unreachable', (failed) => link.end(connectError(failed, target)));
  id.on('connect-error', (failed) => link.end(connectError(failed, target)));
  link.adoptDriver(driver);
  link.agree(reply.agreement, canRead(event));
  link.receives.start();
  id.accept({
    responderResources: endpoint.responderResources,
    // No more than the client said that it serves; 0 would make a Read hang for ever.
    initiatorDepth: Math.max(1, Math.min(endpoint.initiatorDepth, event.initiatorDepth)),
    ...(privateData.length === 0 ? {} : { privateData }),
  });
  driver.accepted();
}

/** `rdma_reject(3)`, with a header if the request had one: so the client can tell where the user's data begins. */
export function reject({ id, offer }: IncomingRequest, privateData: Uint8Array): void {
  const transport = id.device?.transport === 'iwarp' ? 'iwarp' : 'infiniband';
  const header = offer === null ? null : makeRejection(noTerms);
  const bytes = encodePrivateData(header, privateData, privateDataLimit(transport, 'reject', offer !== null));
  rejectId(id, bytes);
}

function rejectId(id: CmId, bytes: Uint8Array): void {
  try {
    id.reject(bytes.length === 0 ? undefined : bytes);
  } catch (error) {
    // The client has gone meanwhile: it has what it would have been told.
    if (!(error instanceof RdmaError)) throw error;
  }
}

/** What goes with a reject: nothing of it matters. */
const noTerms = {
  responderResources: 0,
  initiatorDepth: 0,
  flowControl: false,
  receiveCredits: 0,
  maxMessageSize: 0,
  rkey: 0,
};
