import { describe, expect, it } from 'vitest';
import { RdmaError } from '#lib/errors.js';
import type { Header } from '#lib/peer-to-peer/header.js';
import {
  answerOffer,
  makeOffer,
  makeRejection,
  NO_AGREEMENT,
  readAnswer,
  readRejection,
  type Terms,
} from '#lib/peer-to-peer/negotiation.js';
import { normalizePeerToPeer, type PeerToPeer, type Rtr } from '#lib/peer-to-peer/options.js';

const active: Terms = {
  responderResources: 4,
  initiatorDepth: 5,
  flowControl: true,
  receiveCredits: 64,
  maxMessageSize: 8192,
  rkey: 0xa0,
};
const passive: Terms = { ...active, receiveCredits: 32, maxMessageSize: 4096, rkey: 0xb0 };
const depthless: Partial<Terms>[] = [{ responderResources: 0 }, { initiatorDepth: 0 }];

function request(options: Partial<PeerToPeer> = {}): PeerToPeer {
  const normalized = normalizePeerToPeer(options);
  if (normalized === null) throw new Error('peerToPeer is off');
  return normalized;
}

function offerOf(options: PeerToPeer | null, terms = active): Header {
  const offer = makeOffer(options, terms);
  if (offer === null) throw new Error('no offer was made');
  return offer;
}

/** What both sides come to. */
function negotiate(options: PeerToPeer | null, own = active, peer = passive) {
  const offer = makeOffer(options, own);
  const reply = answerOffer(offer, 'accept', peer);
  if ('error' in reply) throw reply.error;
  const conclusion = readAnswer(offer, reply.answer, options);
  if ('error' in conclusion) throw conclusion.error;
  return { active: conclusion.agreement, passive: reply.agreement };
}

describe('an offer', () => {
  it('is not made by a plain connection', () => {
    expect(makeOffer(null, { ...active, flowControl: false })).toBeNull();
  });

  it("is not made with negotiate: 'off'", () => {
    expect(makeOffer(request({ negotiate: 'off' }), { ...active, flowControl: false })).toBeNull();
  });

  it('may be for credits alone', () => {
    expect(makeOffer(null, active)).toEqual({
      peerToPeer: false,
      sendRtr: false,
      writeRtr: false,
      readRtr: false,
      flowControl: true,
      responderResources: 4,
      initiatorDepth: 5,
      receiveCredits: 64,
      maxMessageSize: 8192,
      rkey: 0xa0,
    });
  });

  it('may be for peer-to-peer alone', () => {
    const offer = makeOffer(request(), { ...active, flowControl: false });
    expect(offer).toMatchObject({ peerToPeer: true, flowControl: false, receiveCredits: 0 });
  });

  it.each([
    ['read', { readRtr: true, writeRtr: false, sendRtr: true }],
    ['write', { readRtr: false, writeRtr: true, sendRtr: false }],
    ['send', { readRtr: false, writeRtr: false, sendRtr: true }],
  ] as const)('for %s names it, and a Send beside a Read', (rtr, flags) => {
    expect(makeOffer(request({ rtr }), active)).toMatchObject(flags);
  });

  it.each(depthless)('does not name a Read with %o', (depths) => {
    const offer = makeOffer(request(), { ...active, ...depths });
    expect(offer).toMatchObject({ readRtr: false, sendRtr: true });
  });

  it('tells of more credits than its field holds as the most that it holds', () => {
    const offer = makeOffer(request(), { ...active, receiveCredits: 70_000, maxMessageSize: 2 ** 33 });
    expect(offer).toMatchObject({ receiveCredits: 0xffff, maxMessageSize: 0xffff_ffff });
  });
});

describe('two sides that negotiate', () => {
  it.each(['read', 'write', 'send'] as const)('agree on %s and on credits', (rtr) => {
    const common = { header: true, peerToPeer: true, rtr };
    expect(negotiate(request({ rtr }))).toEqual({
      active: { ...common, sendCredits: 32, maxMessageSize: 4096, rkey: 0xb0 },
      passive: { ...common, sendCredits: 64, maxMessageSize: 8192, rkey: 0xa0 },
    });
  });

  it('agree on credits without peer-to-peer', () => {
    const { active: one, passive: other } = negotiate(null);
    expect(one).toMatchObject({ header: true, peerToPeer: false, rtr: null, sendCredits: 32 });
    expect(other).toMatchObject({ header: true, peerToPeer: false, rtr: null, sendCredits: 64 });
  });

  it.each([
    [false, true],
    [true, false],
  ])('agree on peer-to-peer without credits, asked for: %s, granted: %s', (asked, granted) => {
    const both = negotiate(
      request(),
      { ...active, flowControl: asked },
      { ...passive, flowControl: granted },
    );
    for (const side of [both.active, both.passive]) {
      expect(side).toMatchObject({ peerToPeer: true, rtr: 'read', sendCredits: null });
    }
  });

  it.each(depthless)('agree on GO alone where a Read was asked for and one of them has %o', (depths) => {
    for (const both of [
      negotiate(request(), { ...active, ...depths }),
      negotiate(request(), active, { ...passive, ...depths }),
    ]) {
      expect(both.active.rtr).toBe('send');
      expect(both.passive.rtr).toBe('send');
    }
  });

  it.each(depthless)('agree on a Write, which needs no depth, with %o', (depths) => {
    const both = negotiate(request({ rtr: 'write' }), { ...active, ...depths }, { ...passive, ...depths });
    expect(both.active.rtr).toBe('write');
    expect(both.passive.rtr).toBe('write');
  });

  it('always choose one request of those offered', () => {
    for (const rtr of ['read', 'write', 'send'] as const) {
      for (let depths = 0; depths < 16; depths++) {
        const bit = (index: number) => (depths >> index) & 1;
        const own = { ...active, responderResources: bit(0), initiatorDepth: bit(1) };
        const peer = { ...passive, responderResources: bit(2), initiatorDepth: bit(3) };
        const offer = offerOf(request({ rtr }), own);
        const { answer } = answerOffer(offer, 'accept', peer);
        const chosen = (['readRtr', 'writeRtr', 'sendRtr'] as const).filter((flag) => answer?.[flag]);
        expect(chosen).toHaveLength(1);
        expect(offer[chosen[0] ?? 'readRtr']).toBe(true);
        const expected: Rtr = rtr === 'read' && depths !== 15 ? 'send' : rtr;
        expect(negotiate(request({ rtr }), own, peer).active.rtr).toBe(expected);
      }
    }
  });
});

describe('a server', () => {
  it.each(['accept', false] as const)('with peerToPeer: %s answers no header with none', (option) => {
    expect(answerOffer(null, option, passive)).toEqual({ answer: null, agreement: NO_AGREEMENT });
  });

  it('with peerToPeer: false answers a header without A and grants credits all the same', () => {
    const reply = answerOffer(offerOf(request()), false, passive);
    expect(reply).toMatchObject({
      answer: { peerToPeer: false, readRtr: false, writeRtr: false, sendRtr: false, flowControl: true },
      agreement: { header: true, peerToPeer: false, sendCredits: 64 },
    });
  });

  it('that insists accepts who asks', () => {
    expect(answerOffer(offerOf(request()), 'require', passive)).toMatchObject({
      answer: { peerToPeer: true, readRtr: true },
      agreement: { peerToPeer: true, rtr: 'read' },
    });
  });

  it('that insists rejects a plain request, with no header of which it knows nothing', () => {
    const reply = answerOffer(null, 'require', passive);
    expect(reply).toEqual({ answer: null, error: expect.any(RdmaError) });
    expect(reply).toMatchObject({ error: { code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' } });
  });

  it('that insists tells a client that asked for credits alone why it is rejected', () => {
    const reply = answerOffer(offerOf(null), 'require', passive);
    expect(reply).toMatchObject({ error: { code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' } });
    expect(readRejection(reply.answer)).toMatchObject({ code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' });
  });

  it('that rejects for a reason of its own gives no such reason', () => {
    expect(readRejection(makeRejection(passive))).toBeNull();
    expect(readRejection(null)).toBeNull();
  });

  it('declines an offer that names no request', () => {
    const offer = { ...offerOf(request()), sendRtr: false, readRtr: false };
    expect(answerOffer(offer, 'accept', passive)).toMatchObject({ agreement: { peerToPeer: false } });
    expect(answerOffer(offer, 'require', passive)).toMatchObject({
      error: { code: 'ERR_RDMA_PEER_TO_PEER_REQUIRED' },
    });
  });

  it('chooses the Read where everything is offered, and the Write where a Read could hang', () => {
    const offer = { ...offerOf(request()), writeRtr: true };
    expect(answerOffer(offer, 'accept', passive)).toMatchObject({ agreement: { rtr: 'read' } });
    expect(answerOffer(offer, 'accept', { ...passive, responderResources: 0 })).toMatchObject({
      agreement: { rtr: 'write' },
    });
  });

  it('answers the Read where nothing else is offered, for which GO alone then stands', () => {
    const offer = { ...offerOf(request()), sendRtr: false };
    const { answer } = answerOffer(offer, 'accept', { ...passive, responderResources: 0 });
    expect(answer).toMatchObject({ peerToPeer: true, readRtr: true });
    expect(readAnswer(offer, answer, request())).toMatchObject({
      agreement: { peerToPeer: true, rtr: 'send' },
    });
  });

  it('takes a key of 0 for none', () => {
    expect(answerOffer({ ...offerOf(request()), rkey: 0 }, 'accept', passive)).toMatchObject({
      agreement: { rkey: 1 },
    });
  });
});

describe('a client', () => {
  const unsupported = { error: { code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' } };
  const declined = { ...makeRejection(passive), flowControl: true, receiveCredits: 32 };

  it('carries on with a peer that answers nothing, when it prefers', () => {
    expect(readAnswer(offerOf(request()), null, request())).toEqual({ agreement: NO_AGREEMENT });
  });

  it('carries on with a peer that declines, when it prefers, and takes its credits', () => {
    expect(readAnswer(offerOf(request()), declined, request())).toMatchObject({
      agreement: { header: true, peerToPeer: false, rtr: null, sendCredits: 32, maxMessageSize: 4096 },
    });
  });

  it.each([
    ['answers nothing', null],
    ['declines', declined],
  ])('that requires fails when the peer %s', (_, answer) => {
    const options = request({ negotiate: 'require' });
    expect(readAnswer(offerOf(options), answer, options)).toMatchObject(unsupported);
  });

  it('that asked for credits alone carries on without them', () => {
    expect(readAnswer(offerOf(null), null, null)).toEqual({ agreement: NO_AGREEMENT });
  });

  it('that offered nothing takes no answer for one', () => {
    const { answer } = answerOffer(offerOf(request()), 'accept', passive);
    expect(readAnswer(null, answer, null)).toEqual({ agreement: NO_AGREEMENT });
    expect(readAnswer(null, answer, request({ negotiate: 'off' }))).toEqual({ agreement: NO_AGREEMENT });
  });

  it('fails on a peer that agrees to what it was not offered', () => {
    const { answer } = answerOffer(offerOf(request()), 'accept', passive);
    const withoutCredits = offerOf(request(), { ...active, flowControl: false });
    expect(readAnswer(offerOf(null), answer, null)).toMatchObject(unsupported);
    expect(readAnswer(withoutCredits, answer, request())).toMatchObject(unsupported);
  });

  it('fails on a peer that chooses no request, or one that it was not offered', () => {
    const offer = offerOf(request());
    for (const flags of [{}, { writeRtr: true }]) {
      const answer = { ...makeRejection(passive), peerToPeer: true, ...flags };
      expect(readAnswer(offer, answer, request())).toMatchObject(unsupported);
    }
  });
});
