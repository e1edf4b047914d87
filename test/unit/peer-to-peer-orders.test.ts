import { describe, expect, it } from 'vitest';
import { ActiveHandshake } from '#lib/peer-to-peer/active.js';
import type { Request, Timer } from '#lib/peer-to-peer/handshake.js';
import { NO_AGREEMENT } from '#lib/peer-to-peer/negotiation.js';
import { normalizePeerToPeer } from '#lib/peer-to-peer/options.js';
import { PassiveHandshake } from '#lib/peer-to-peer/passive.js';
import { explore, type Happening, type Scenario } from './peer-to-peer-explorer.js';

const rtrs = ['read', 'write', 'send'] as const;
const transports = ['iwarp', 'roce'] as const;

function activeScenario(
  transport: (typeof transports)[number],
  rtr: (typeof rtrs)[number] | null,
  negotiated: boolean,
  depth: 0 | 1,
): Scenario {
  const agreement = negotiated ? { ...NO_AGREEMENT, header: true, peerToPeer: true, rtr } : NO_AGREEMENT;
  const requests = requestsOf(rtr, negotiated, depth);
  const [first] = requests;
  const waits = first === 'read' || (requests.length > 0 && !negotiated);
  const answered = (history: Set<Happening>) => history.has(`completed ${first ?? 'read'}`);
  const heard = (history: Set<Happening>) =>
    history.has('received message') && (negotiated || first !== 'read');
  const proven = (history: Set<Happening>) =>
    heard(history) || ((first === 'read' || transport !== 'iwarp') && answered(history));
  return {
    title: `${transport}, ${rtr ?? 'plain'}, ${negotiated ? '' : 'not '}negotiated, depth ${depth}`,
    create: () => {
      const handshake = new ActiveHandshake(normalizePeerToPeer(rtr === null ? false : { rtr }), transport);
      return {
        settled: () => handshake.settled,
        step: (happening, at) => {
          const [type, detail] = happening.split(' ');
          switch (type) {
            case 'established':
              return handshake.step({
                type,
                at,
                agreement,
                initiatorDepth: depth,
                responderResources: depth,
              });
            case 'received':
              return handshake.step({ type, at });
            case 'completed':
              return handshake.step({ type, at, request: detail as Request });
            case 'timer':
              return handshake.step({ type, at, timer: detail as Timer });
            default:
              return handshake.step({ type: 'failed', at, error: new Error('failed') });
          }
        },
      };
    },
    unasked: { established: 2, 'received message': 2, failed: 1 },
    requests,
    isEstablished: (history) => history.has('established'),
    isReleased: (history) => (waits ? answered(history) : history.has('established')),
    isKickDue: (history) => rtr !== null && history.has('established') && !proven(history),
    expectsGo: false,
    isDeadlineSet: (history) => waits && history.has('established'),
  };
}

/** The requests of the design's table. */
function requestsOf(rtr: (typeof rtrs)[number] | null, negotiated: boolean, depth: 0 | 1): Request[] {
  if (rtr === null) return [];
  if (!negotiated) return rtr === 'write' || depth === 0 ? ['write'] : ['read'];
  if (rtr === 'write') return ['write', 'go'];
  return rtr === 'read' && depth > 0 ? ['read', 'go'] : ['go'];
}

function passiveScenario(transport: (typeof transports)[number], negotiated: boolean): Scenario {
  const agreement = negotiated
    ? ({ ...NO_AGREEMENT, header: true, peerToPeer: true, rtr: 'read' } as const)
    : NO_AGREEMENT;
  const received = (history: Set<Happening>) => history.has('received GO') || history.has('received message');
  const isEstablished = (history: Set<Happening>) =>
    history.has('accepted') && (history.has('established') || received(history));
  return {
    title: `${transport}, ${negotiated ? 'negotiated' : 'plain'}`,
    create: () => {
      const handshake = new PassiveHandshake({ requested: negotiated, agreement, transport });
      return {
        settled: () => handshake.settled,
        step: (happening, at) => {
          const [type, detail] = happening.split(' ');
          switch (type) {
            case 'accepted':
            case 'established':
            case 'queued':
            case 'releaseSends':
              return handshake.step({ type, at });
            case 'received':
              return handshake.step({ type, at, length: detail === 'GO' ? 0 : 16 });
            case 'timer':
              return handshake.step({ type, at, timer: detail as Timer });
            default:
              return handshake.step({ type: 'failed', at, error: new Error('failed') });
          }
        },
      };
    },
    unasked: {
      accepted: 2,
      established: 2,
      'received GO': 2,
      'received message': 1,
      queued: 2,
      releaseSends: 1,
      failed: 1,
    },
    requests: [],
    isEstablished,
    isReleased: (history) => {
      if (!isEstablished(history)) return false;
      if (negotiated) return history.has('received GO');
      return transport !== 'iwarp' || received(history) || history.has('releaseSends');
    },
    isKickDue: () => false,
    expectsGo: negotiated,
    isDeadlineSet: (history) => negotiated && history.has('accepted'),
  };
}

const scenarios = {
  active: transports.flatMap((transport) => [
    activeScenario(transport, null, false, 1),
    ...rtrs.flatMap((rtr) =>
      [true, false].flatMap((negotiated) => [
        activeScenario(transport, rtr, negotiated, 0),
        activeScenario(transport, rtr, negotiated, 1),
      ]),
    ),
  ]),
  passive: transports.flatMap((transport) => [
    passiveScenario(transport, true),
    passiveScenario(transport, false),
  ]),
};

describe.each(Object.entries(scenarios))('the %s side', (_, all) => {
  it.each(all.map((scenario) => [scenario.title, scenario] as const))(
    'keeps its promises in every order of events: %s',
    (_title, scenario) => {
      const { fates, settled } = explore(scenario);
      expect([...fates].sort()).toEqual(['failed', 'open', 'released']);
      expect(settled).toContain(true);
    },
  );
});
