import { describe, expect, it } from 'vitest';
import { type ActiveEvent, ActiveHandshake } from '#lib/peer-to-peer/active.js';
import type { Action, CommonEvent } from '#lib/peer-to-peer/handshake.js';
import type { Transport } from '#lib/peer-to-peer/header.js';
import { type Agreement, NO_AGREEMENT } from '#lib/peer-to-peer/negotiation.js';
import { normalizePeerToPeer, type Rtr } from '#lib/peer-to-peer/options.js';

const agreed = (rtr: Rtr): Agreement => ({ ...NO_AGREEMENT, header: true, peerToPeer: true, rtr });
const noDepth = [
  { initiatorDepth: 0, responderResources: 1 },
  { initiatorDepth: 1, responderResources: 0 },
];
const established = (agreement: Agreement, at = 40): ActiveEvent => ({
  type: 'established',
  at,
  agreement,
  initiatorDepth: 1,
  responderResources: 1,
});

/** A handshake whose connecting took from 0 to 40 ms, unless the test says otherwise. */
function connection(peerToPeer: unknown, transport: Transport = 'iwarp') {
  const handshake = new ActiveHandshake(normalizePeerToPeer(peerToPeer), transport);
  const step = (event: CommonEvent | ActiveEvent) => handshake.step(event).map(brief).filter(Boolean);
  return { handshake, step };
}

/** An action in a word or two; nothing for a step of the timeline. */
function brief(action: Action): string {
  switch (action.type) {
    case 'post':
      return `post ${action.request}`;
    case 'arm':
      return `arm ${action.timer} ${action.delay}`;
    case 'disarm':
      return `disarm ${action.timer}`;
    case 'warn':
      return `warn ${action.code}`;
    case 'step':
      return '';
    default:
      return action.type;
  }
}

describe('the active side of a plain connection', () => {
  it('releases sends once it is established, and posts nothing', () => {
    const { handshake, step } = connection(false);
    expect(step({ type: 'connecting', at: 0 })).toEqual([]);
    expect(step(established(NO_AGREEMENT))).toEqual(['established', 'release']);
    expect(handshake.settled).toBe(true);
    expect(handshake.summary).toEqual({
      requested: false,
      negotiated: false,
      rtr: null,
      kicked: false,
      times: { connecting: 0, established: 40, released: 40 },
    });
  });
});

describe('the active side of a negotiated connection', () => {
  it('posts the Read and GO right behind it, and releases sends when the Read completes', () => {
    const { handshake, step } = connection(true);
    step({ type: 'connecting', at: 0 });
    expect(step(established(agreed('read')))).toEqual([
      'established',
      'post read',
      'post go',
      'arm kick 150',
      'arm deadline 10000',
    ]);
    expect(step({ type: 'completed', request: 'go', at: 41 })).toEqual([]);
    expect(handshake.released).toBe(false);
    expect(step({ type: 'completed', request: 'read', at: 80 })).toEqual([
      'disarm kick',
      'disarm deadline',
      'release',
    ]);
    expect(handshake.settled).toBe(true);
    expect(handshake.summary).toEqual({
      requested: true,
      negotiated: true,
      rtr: 'read',
      kicked: false,
      times: {
        connecting: 0,
        established: 40,
        readPosted: 40,
        goPosted: 40,
        goCompleted: 41,
        readCompleted: 80,
        released: 80,
      },
    });
  });

  it('posts a Write and GO and releases sends at once', () => {
    const { handshake, step } = connection({ rtr: 'write' });
    expect(step(established(agreed('write')))).toEqual([
      'established',
      'post write',
      'post go',
      'arm kick 150',
      'release',
    ]);
    expect(handshake.summary).toMatchObject({ negotiated: true, rtr: 'write' });
  });

  it('posts GO alone and releases sends at once', () => {
    const { handshake, step } = connection({ rtr: 'send' });
    expect(step(established(agreed('send')))).toEqual(['established', 'post go', 'arm kick 150', 'release']);
    expect(handshake.summary).toMatchObject({ negotiated: true, rtr: 'send' });
  });

  it.each(noDepth)('posts GO in place of a Read with %o', (depths) => {
    const { handshake, step } = connection(true);
    const actions = step({ type: 'established', at: 40, agreement: agreed('read'), ...depths });
    expect(actions).toEqual(['established', 'post go', 'arm kick 150', 'release']);
    expect(handshake.summary.rtr).toBe('send');
  });

  it.each(noDepth)('posts a Write, which needs no depth, with %o', (depths) => {
    const { step } = connection({ rtr: 'write' });
    const actions = step({ type: 'established', at: 40, agreement: agreed('write'), ...depths });
    expect(actions).toContain('post write');
  });

  it('does as the answer says, not as it asked', () => {
    const { step } = connection(true);
    expect(step(established(agreed('send')))).toEqual(['established', 'post go', 'arm kick 150', 'release']);
  });
});

describe('the active side of a connection that was not negotiated', () => {
  const warning = 'warn RDMA_PEER_TO_PEER_NOT_NEGOTIATED';

  it('posts the Read alone and releases sends when it completes', () => {
    const { handshake, step } = connection({ negotiate: 'off' });
    expect(step(established(NO_AGREEMENT))).toEqual([
      'established',
      'post read',
      'arm kick 1000',
      'arm deadline 10000',
    ]);
    expect(step({ type: 'completed', request: 'read', at: 80 })).toEqual([
      'disarm kick',
      'disarm deadline',
      'release',
    ]);
    expect(handshake.summary).toMatchObject({ requested: true, negotiated: false, rtr: 'read' });
  });

  it('posts the Write alone when asked to, and releases sends when it completes', () => {
    const { handshake, step } = connection({ rtr: 'write', negotiate: 'off' });
    expect(step(established(NO_AGREEMENT))).toEqual([
      'established',
      'post write',
      'arm kick 1000',
      'arm deadline 10000',
    ]);
    expect(step({ type: 'completed', request: 'write', at: 41 })).toEqual(['disarm deadline', 'release']);
    expect(handshake.settled).toBe(false);
    expect(step({ type: 'received', at: 80 })).toEqual(['disarm kick']);
    expect(handshake.settled).toBe(true);
  });

  it('posts a Write where a Read could hang, as a foreign peer would take GO for a message', () => {
    for (const depths of noDepth) {
      const { step } = connection({ negotiate: 'off' });
      const actions = step({ type: 'established', at: 40, agreement: NO_AGREEMENT, ...depths });
      expect(actions).toEqual(['established', 'post write', 'arm kick 1000', 'arm deadline 10000']);
    }
  });

  it("posts the Read where it would rather have sent GO alone: 'send' is for peers that know of it", () => {
    const { step } = connection({ rtr: 'send' });
    expect(step(established(NO_AGREEMENT))).toEqual([
      'established',
      warning,
      'post read',
      'arm kick 1000',
      'arm deadline 10000',
    ]);
  });

  it('warns if it would rather have negotiated, and only then', () => {
    expect(connection(true).step(established(NO_AGREEMENT))).toContain(warning);
    expect(connection({ negotiate: 'off' }).step(established(NO_AGREEMENT))).not.toContain(warning);
    expect(connection(true).step(established(agreed('read')))).not.toContain(warning);
  });
});

describe('the kick', () => {
  it('comes after twice the time of connecting, where that is the longer', () => {
    const { step } = connection(true);
    step({ type: 'connecting', at: 1000 });
    expect(step(established(agreed('read'), 1200))).toContain('arm kick 400');
  });

  it('is one 0-byte Write, after which the Read is still waited for', () => {
    const { handshake, step } = connection(true);
    step(established(agreed('read')));
    expect(step({ type: 'timer', timer: 'kick', at: 190 })).toEqual(['post kick']);
    expect(step({ type: 'timer', timer: 'kick', at: 340 })).toEqual([]);
    expect(handshake.summary.kicked).toBe(true);
    expect(step({ type: 'completed', request: 'kick', at: 341 })).toEqual([]);
    expect(step({ type: 'completed', request: 'read', at: 350 })).toEqual(['disarm deadline', 'release']);
    expect(handshake.settled).toBe(true);
  });

  it('is not needed once something was received, and the Read is still waited for', () => {
    const { handshake, step } = connection(true);
    step(established(agreed('read')));
    expect(step({ type: 'received', at: 60 })).toEqual(['disarm kick']);
    expect(step({ type: 'timer', timer: 'kick', at: 190 })).toEqual([]);
    expect(handshake.released).toBe(false);
    expect(step({ type: 'completed', request: 'read', at: 200 })).toEqual(['disarm deadline', 'release']);
  });

  it('is still due when a foreign peer has spoken, which may not have got the Read', () => {
    const { step } = connection({ negotiate: 'off' });
    step(established(NO_AGREEMENT));
    expect(step({ type: 'received', at: 60 })).toEqual([]);
    expect(step({ type: 'timer', timer: 'kick', at: 1040 })).toEqual(['post kick']);
  });

  it.each(['write', 'send'] as const)(
    'is still due after the release, with %s, until something is received',
    (rtr) => {
      for (const received of [false, true]) {
        const { handshake, step } = connection({ rtr });
        step(established(agreed(rtr)));
        expect(step({ type: 'completed', request: rtr === 'send' ? 'go' : rtr, at: 41 })).toEqual([]);
        expect(handshake.released).toBe(true);
        if (received) expect(step({ type: 'received', at: 60 })).toEqual(['disarm kick']);
        expect(step({ type: 'timer', timer: 'kick', at: 190 })).toEqual(received ? [] : ['post kick']);
        expect(handshake.settled).toBe(true);
      }
    },
  );

  it.each(['roce', 'infiniband'] as const)('is not needed on %s once GO is acknowledged', (transport) => {
    const { step } = connection({ rtr: 'send' }, transport);
    step(established(agreed('send')));
    expect(step({ type: 'completed', request: 'go', at: 60 })).toEqual(['disarm kick']);
  });

  it('is not due for a connection that ended after its release', () => {
    const { handshake, step } = connection({ rtr: 'send' });
    step(established(agreed('send')));
    expect(step({ type: 'failed', error: new Error('lost'), at: 60 })).toEqual(['disarm kick']);
    expect(handshake.settled).toBe(true);
    expect(handshake.summary.times.failed).toBeUndefined();
  });
});

describe('the active side of a handshake that fails', () => {
  it('fails past its time-out, and a Read that completes later changes nothing', () => {
    const { handshake, step } = connection({ timeout: 300 });
    expect(step(established(agreed('read')))).toContain('arm deadline 300');
    step({ type: 'timer', timer: 'kick', at: 190 });
    expect(handshake.step({ type: 'timer', timer: 'deadline', at: 340 })).toEqual([
      { type: 'fail', error: expect.objectContaining({ code: 'ERR_RDMA_PEER_TO_PEER_TIMEOUT' }) },
      { type: 'step', step: 'failed', at: 340 },
    ]);
    expect(step({ type: 'completed', request: 'read', at: 341 })).toEqual([]);
    expect(handshake.released).toBe(false);
    expect(handshake.summary.times.failed).toBe(340);
  });

  it('tells the cause as it is, and only the first one', () => {
    const { handshake, step } = connection(true);
    const error = new Error('the Read was flushed');
    step(established(agreed('read')));
    expect(step({ type: 'failed', error, at: 60 })).toEqual(['disarm kick', 'disarm deadline', 'fail']);
    expect(step({ type: 'failed', error: new Error('GO was flushed'), at: 60 })).toEqual([]);
    expect(handshake.settled).toBe(true);

    const other = connection(true).handshake;
    expect(other.step({ type: 'failed', error, at: 1 })[0]).toEqual({ type: 'fail', error });
  });

  it('has nothing to do once it failed before it was established', () => {
    const { step } = connection(true);
    expect(step({ type: 'failed', error: new Error('refused'), at: 1 })).toEqual(['fail']);
    expect(step(established(agreed('read')))).toEqual([]);
  });
});
