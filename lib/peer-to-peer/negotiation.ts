import { RdmaError } from '../errors.js';
import type { Header } from './header.js';
import type { PeerToPeer, Rtr, ServerPeerToPeer } from './options.js';

/** What one side brings to a negotiation: what it has asked for on its own queue pair, and its memory. */
export interface Terms {
  /** The `responder_resources` of its `rdma_conn_param` (IRD). */
  responderResources: number;
  /** The `initiator_depth` of its `rdma_conn_param` (ORD). */
  initiatorDepth: number;
  /** Whether credits are asked for, or on the passive side granted to who asks. */
  flowControl: boolean;
  /** The receives that it has posted for the peer's messages. */
  receiveCredits: number;
  maxMessageSize: number;
  /** Key of its region for 0-byte Reads and Writes. */
  rkey: number;
}

/** What the two sides came to. */
export interface Agreement {
  /** The peer sent a header, so the user's private data lie behind it. */
  header: boolean;
  /** The active side sends GO and the passive side waits for it. */
  peerToPeer: boolean;
  /** The request that goes first; null unless {@link Agreement.peerToPeer}. */
  rtr: Rtr | null;
  /** The messages that the peer has receives for; null without flow control. */
  sendCredits: number | null;
  /** The largest message that the peer takes; null where it did not say. */
  maxMessageSize: number | null;
  /** The key for a 0-byte Read or Write to this peer, never 0. */
  rkey: number;
}

/** A peer that says nothing, or that is told nothing. */
export const NO_AGREEMENT: Agreement = {
  header: false,
  peerToPeer: false,
  rtr: null,
  sendCredits: null,
  maxMessageSize: null,
  rkey: 1,
};

/** The header of a connect request, or null if this connection does not negotiate. */
export function makeOffer(peerToPeer: PeerToPeer | null, terms: Terms): Header | null {
  const asks = peerToPeer !== null && peerToPeer.negotiate !== 'off';
  if (!asks && !terms.flowControl) return null;
  const rtr = asks ? peerToPeer.rtr : null;
  return {
    ...describeTerms(terms),
    peerToPeer: asks,
    // Beside the Read, so that a responder without the depth for it has something to choose.
    sendRtr: rtr === 'send' || rtr === 'read',
    writeRtr: rtr === 'write',
    readRtr: rtr === 'read' && terms.initiatorDepth > 0 && terms.responderResources > 0,
  };
}

/** The reply to a request: with `error`, a reject. `answer` is null where the request had no header. */
export type Reply = { answer: Header | null } & ({ agreement: Agreement } | { error: RdmaError });

/** What the passive side makes of the offer in a request. */
export function answerOffer(offer: Header | null, option: ServerPeerToPeer, terms: Terms): Reply {
  const rtr = offer?.peerToPeer && option !== false ? chooseRtr(offer, terms) : null;
  if (rtr === null && option === 'require') {
    // The one reply with A and without an RTR: a client that asked for credits alone learns why.
    return { answer: offer && { ...makeRejection(terms), peerToPeer: true }, error: required() };
  }
  if (offer === null) return { answer: null, agreement: NO_AGREEMENT };

  const answer: Header = {
    ...describeTerms({ ...terms, flowControl: terms.flowControl && offer.flowControl }),
    peerToPeer: rtr !== null,
    sendRtr: rtr === 'send',
    writeRtr: rtr === 'write',
    readRtr: rtr === 'read',
  };
  return { answer, agreement: agree(offer, answer.flowControl, rtr) };
}

/** The header of a reject that has another reason than the server's `peerToPeer` option. */
export function makeRejection(terms: Terms): Header {
  return {
    ...describeTerms({ ...terms, flowControl: false }),
    peerToPeer: false,
    sendRtr: false,
    writeRtr: false,
    readRtr: false,
  };
}

/** What the active side makes of the answer to its offer. */
export function readAnswer(
  offer: Header | null,
  answer: Header | null,
  peerToPeer: PeerToPeer | null,
): { agreement: Agreement } | { error: RdmaError } {
  // Without an offer what looks like an answer is the user's data of a peer that knows nothing of headers.
  if (offer === null) return { agreement: NO_AGREEMENT };
  if (answer === null || !answer.peerToPeer) {
    if (peerToPeer?.negotiate === 'require') {
      return { error: unsupported('The peer did not agree to a peer-to-peer connection') };
    }
    if (answer === null) return { agreement: NO_AGREEMENT };
  }
  // A peer that counts credits, or waits for a GO, that it was not offered would miscount or hang.
  if (answer.flowControl && !offer.flowControl) {
    return { error: unsupported('The peer agreed to flow control, which it was not offered') };
  }
  const rtr = answer.peerToPeer ? acceptedRtr(offer, answer) : null;
  if (answer.peerToPeer && rtr === null) {
    return {
      error: unsupported(
        'The peer agreed to a peer-to-peer connection, but to no ready-to-receive message that it was offered',
      ),
    };
  }
  return { agreement: agree(answer, answer.flowControl, rtr) };
}

/** The reason that the header of a reject gives, or null if it gives none. */
export function readRejection(answer: Header | null): RdmaError | null {
  return answer?.peerToPeer ? required() : null;
}

function agree(peer: Header, flowControl: boolean, rtr: Rtr | null): Agreement {
  return {
    header: true,
    peerToPeer: rtr !== null,
    rtr,
    sendCredits: flowControl ? peer.receiveCredits : null,
    maxMessageSize: peer.maxMessageSize,
    rkey: peer.rkey === 0 ? NO_AGREEMENT.rkey : peer.rkey,
  };
}

// Credits and sizes beyond the header's fields are told as the most that the fields hold: less is always safe.
function describeTerms(terms: Terms) {
  return {
    flowControl: terms.flowControl,
    responderResources: terms.responderResources,
    initiatorDepth: terms.initiatorDepth,
    receiveCredits: terms.flowControl ? Math.min(terms.receiveCredits, 0xffff) : 0,
    maxMessageSize: Math.min(terms.maxMessageSize, 0xffff_ffff),
    rkey: terms.rkey,
  };
}

/** One request of those offered; null for an offer that names none. */
function chooseRtr(offer: Header, terms: Terms): Rtr | null {
  if (offer.readRtr && canRead(offer, terms)) return 'read';
  if (offer.writeRtr) return 'write';
  if (offer.sendRtr) return 'send';
  return offer.readRtr ? 'read' : null;
}

function acceptedRtr(offer: Header, answer: Header): Rtr | null {
  if (offer.readRtr && answer.readRtr) return canRead(offer, answer) ? 'read' : 'send';
  if (offer.writeRtr && answer.writeRtr) return 'write';
  if (offer.sendRtr && answer.sendRtr) return 'send';
  return null;
}

type Depths = Pick<Terms, 'responderResources' | 'initiatorDepth'>;

/**
 * A Read that outruns a depth wedges siw's send queue or hangs on rxe. All four depths count: which of them
 * limits it depends on the driver, as siw, irdma and qedr exchange the two.
 */
function canRead(active: Depths, passive: Depths): boolean {
  return [active, passive].every((side) => side.responderResources > 0 && side.initiatorDepth > 0);
}

function unsupported(message: string): RdmaError {
  return new RdmaError('ERR_RDMA_PEER_TO_PEER_UNSUPPORTED', message);
}

function required(): RdmaError {
  return new RdmaError(
    'ERR_RDMA_PEER_TO_PEER_REQUIRED',
    'The server takes peer-to-peer connections only: connect with peerToPeer',
  );
}
