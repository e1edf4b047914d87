/**
 * The connection set-up of RFC 6581 ("enhanced"): two words in front of the private data. siw speaks it by
 * default (`mpa_version` is 2) and hides the words from its user.
 */
export interface EnhancedSetup {
  /** A: the initiator asks for, and the responder agrees to, a ready-to-receive (RTR) frame. */
  readonly peerToPeer: boolean;
  readonly sendRtr: boolean;
  readonly writeRtr: boolean;
  readonly readRtr: boolean;
  /** Inbound and outbound RDMA Read depth of the frame's sender, 0 to 16383. */
  readonly ird: number;
  readonly ord: number;
}

export const enhancedSetupLength = 4;

const high = 0x8000;
const low = 0x4000;
const depthMask = 0x3fff;

export function encodeEnhancedSetup(setup: EnhancedSetup): Buffer {
  const words = Buffer.alloc(enhancedSetupLength);
  words.writeUInt16BE((setup.peerToPeer ? high : 0) | (setup.sendRtr ? low : 0) | (setup.ird & depthMask), 0);
  words.writeUInt16BE((setup.writeRtr ? high : 0) | (setup.readRtr ? low : 0) | (setup.ord & depthMask), 2);
  return words;
}

export function decodeEnhancedSetup(words: Buffer): EnhancedSetup {
  const first = words.readUInt16BE(0);
  const second = words.readUInt16BE(2);
  return {
    peerToPeer: (first & high) !== 0,
    sendRtr: (first & low) !== 0,
    writeRtr: (second & high) !== 0,
    readRtr: (second & low) !== 0,
    ird: first & depthMask,
    ord: second & depthMask,
  };
}

/** RFC 6581 §9: what the initiator can serve is what the responder may ask for, and one RTR of those offered. */
export function answerEnhancedSetup(offer: EnhancedSetup): EnhancedSetup {
  return {
    peerToPeer: offer.peerToPeer,
    readRtr: offer.peerToPeer && offer.readRtr,
    writeRtr: offer.peerToPeer && offer.writeRtr && !offer.readRtr,
    sendRtr: offer.peerToPeer && offer.sendRtr && !offer.readRtr && !offer.writeRtr,
    ird: offer.ord,
    ord: offer.ird,
  };
}
