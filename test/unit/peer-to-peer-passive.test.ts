import { describe, expect, it } from 'vitest';
import type { CommonEvent } from '#lib/peer-to-peer/handshake.js';
import type { Transport } from '#lib/peer-to-peer/header.js';
import { NO_AGREEMENT } from '#lib/peer-to-peer/negotiation.js';
import { type PassiveEvent, PassiveHandshake } from '#lib/peer-to-peer/passive.js';

const transports: Transport[] = ['iwarp', 'roce', 'infiniband'];

/** Steps of the timeline are left out: the summary tells them. */
function record(handshake: PassiveHandshake) {
  const step = (event: CommonEvent | PassiveEvent) =>
    handshake.step(event).filter((action) => action.type !== 'step');
  return { handshake, step };
}

function negotiated(transport: Transport = 'iwarp', timeout?: number) {
  const agreement = { ...NO_AGREEMENT, header: true, peerToPeer: true, rtr: 'read' } as const;
  return record(new PassiveHandshake({ requested: true, agreement, transport, timeout }));
}

function plain(transport: Transport) {
  return record(new PassiveHandshake({ requested: false, agreement: NO_AGREEMENT, transport }));
}

const held = { type: 'arm', timer: 'held', delay: 1000 };

describe.each(transports)('the passive side of a negotiated connection on %s', (transport) => {
  it('holds sends until GO, which it swallows', () => {
    const { handshake, step } = negotiated(transport);
    expect(step({ type: 'accepted', at: 0 })).toEqual([{ type: 'arm', timer: 'deadline', delay: 10_000 }]);
    expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }]);
    expect(step({ type: 'queued', at: 11 })).toEqual([]);
    expect(step({ type: 'received', length: 0, at: 20 })).toEqual([
      { type: 'swallow' },
      { type: 'disarm', timer: 'deadline' },
      { type: 'release' },
    ]);
    expect(step({ type: 'received', length: 0, at: 30 })).toEqual([]);
    expect(handshake.summary).toEqual({
      requested: true,
      negotiated: true,
      rtr: 'read',
      kicked: false,
      times: { accepted: 0, established: 10, goReceived: 20, released: 20 },
    });
  });

  it('releases sends on a GO that is dequeued before ESTABLISHED, and tells of that first', () => {
    const { handshake, step } = negotiated(transport);
    step({ type: 'accepted', at: 0 });
    expect(step({ type: 'received', length: 0, at: 10 })).toEqual([
      { type: 'swallow' },
      { type: 'established' },
      { type: 'disarm', timer: 'deadline' },
      { type: 'release' },
    ]);
    expect(step({ type: 'established', at: 20 })).toEqual([]);
    expect(handshake.summary.times).toMatchObject({ established: 10, released: 10 });
  });

  it('holds sends on a GO that is dequeued before the accept has returned', () => {
    const { handshake, step } = negotiated(transport);
    expect(step({ type: 'received', length: 0, at: 5 })).toEqual([{ type: 'swallow' }]);
    expect(step({ type: 'established', at: 6 })).toEqual([]);
    expect(handshake.released).toBe(false);
    expect(step({ type: 'accepted', at: 10 })).toEqual([
      { type: 'arm', timer: 'deadline', delay: 10_000 },
      { type: 'established' },
      { type: 'disarm', timer: 'deadline' },
      { type: 'release' },
    ]);
  });

  it('fails if GO never comes', () => {
    const { handshake, step } = negotiated(transport, 50);
    expect(step({ type: 'accepted', at: 0 })).toEqual([{ type: 'arm', timer: 'deadline', delay: 50 }]);
    step({ type: 'established', at: 10 });
    expect(step({ type: 'timer', timer: 'deadline', at: 50 })).toEqual([
      { type: 'fail', error: expect.objectContaining({ code: 'ERR_RDMA_PEER_TO_PEER_TIMEOUT' }) },
    ]);
    expect(step({ type: 'received', length: 0, at: 51 })).toEqual([]);
    expect(handshake.released).toBe(false);
  });

  it('fails if the peer begins with a message of its user in place of GO', () => {
    const { step } = negotiated(transport);
    step({ type: 'accepted', at: 0 });
    step({ type: 'established', at: 1 });
    expect(step({ type: 'received', length: 16, at: 2 })).toEqual([
      { type: 'disarm', timer: 'deadline' },
      { type: 'fail', error: expect.objectContaining({ code: 'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED' }) },
    ]);
  });

  it('is not released by releaseSends()', () => {
    const { handshake, step } = negotiated(transport);
    step({ type: 'accepted', at: 0 });
    step({ type: 'established', at: 1 });
    expect(step({ type: 'releaseSends', at: 2 })).toEqual([]);
    expect(handshake.released).toBe(false);
  });

  it('fails with the cause when the connection is lost', () => {
    const { step } = negotiated(transport);
    const error = new Error('disconnected');
    step({ type: 'accepted', at: 0 });
    expect(step({ type: 'failed', error, at: 5 })).toEqual([
      { type: 'disarm', timer: 'deadline' },
      { type: 'fail', error },
    ]);
    expect(step({ type: 'failed', error, at: 6 })).toEqual([]);
  });
});

describe('the passive side of a plain connection on iWARP', () => {
  it('holds sends until its first receive completes, which is a message like any other', () => {
    const { handshake, step } = plain('iwarp');
    expect(step({ type: 'accepted', at: 0 })).toEqual([]);
    expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }]);
    expect(step({ type: 'received', length: 16, at: 20 })).toEqual([{ type: 'release' }]);
    expect(handshake.settled).toBe(true);
    expect(handshake.summary).toEqual({
      requested: false,
      negotiated: false,
      rtr: null,
      kicked: false,
      times: { accepted: 0, established: 10, released: 20 },
    });
  });

  it('releases sends on a first receive before ESTABLISHED, and tells of that first', () => {
    const { step } = plain('iwarp');
    step({ type: 'accepted', at: 0 });
    expect(step({ type: 'received', length: 0, at: 10 })).toEqual([
      { type: 'established' },
      { type: 'release' },
    ]);
    expect(step({ type: 'established', at: 11 })).toEqual([]);
  });

  it('warns once, naming both cures, when something has waited for a second', () => {
    const { handshake, step } = plain('iwarp');
    step({ type: 'accepted', at: 0 });
    step({ type: 'established', at: 10 });
    expect(step({ type: 'queued', at: 20 })).toEqual([held]);
    expect(step({ type: 'queued', at: 21 })).toEqual([]);
    expect(step({ type: 'timer', timer: 'held', at: 1020 })).toEqual([
      {
        type: 'warn',
        code: 'RDMA_SENDS_HELD',
        message: expect.stringMatching(/peerToPeer.*connection\.releaseSends\(\)/),
      },
    ]);
    expect(step({ type: 'queued', at: 1030 })).toEqual([]);
    expect(step({ type: 'received', length: 16, at: 2000 })).toEqual([{ type: 'release' }]);
    expect(handshake.summary.times.held).toBe(20);
  });

  it('counts the second from ESTABLISHED for what was queued before', () => {
    const { step } = plain('iwarp');
    expect(step({ type: 'queued', at: 0 })).toEqual([]);
    expect(step({ type: 'accepted', at: 1 })).toEqual([]);
    expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }, held]);
  });

  it('does not warn when nothing waits, nor after the release', () => {
    const { step } = plain('iwarp');
    step({ type: 'accepted', at: 0 });
    expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }]);
    step({ type: 'queued', at: 20 });
    expect(step({ type: 'received', length: 16, at: 30 })).toEqual([
      { type: 'disarm', timer: 'held' },
      { type: 'release' },
    ]);
    expect(step({ type: 'timer', timer: 'held', at: 1020 })).toEqual([]);
  });

  it('is released by releaseSends()', () => {
    const { step } = plain('iwarp');
    step({ type: 'accepted', at: 0 });
    step({ type: 'established', at: 10 });
    step({ type: 'queued', at: 20 });
    expect(step({ type: 'releaseSends', at: 30 })).toEqual([
      { type: 'disarm', timer: 'held' },
      { type: 'release' },
    ]);
  });

  it('remembers a releaseSends() before ESTABLISHED', () => {
    const { step } = plain('iwarp');
    expect(step({ type: 'releaseSends', at: 0 })).toEqual([]);
    expect(step({ type: 'accepted', at: 1 })).toEqual([]);
    expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }, { type: 'release' }]);
  });

  it('tells of a request that was declined', () => {
    const handshake = new PassiveHandshake({
      requested: true,
      agreement: { ...NO_AGREEMENT, header: true },
      transport: 'iwarp',
    });
    expect(handshake.summary).toMatchObject({ requested: true, negotiated: false, rtr: null });
  });
});

describe.each(['roce', 'infiniband'] as const)(
  'the passive side of a plain connection on %s',
  (transport) => {
    it('holds nothing back once it is established', () => {
      const { handshake, step } = plain(transport);
      expect(step({ type: 'queued', at: 0 })).toEqual([]);
      expect(step({ type: 'accepted', at: 1 })).toEqual([]);
      expect(step({ type: 'established', at: 10 })).toEqual([{ type: 'established' }, { type: 'release' }]);
      expect(handshake.settled).toBe(true);
    });

    it('takes a first receive for ESTABLISHED', () => {
      const { step } = plain(transport);
      step({ type: 'accepted', at: 0 });
      expect(step({ type: 'received', length: 16, at: 10 })).toEqual([
        { type: 'established' },
        { type: 'release' },
      ]);
    });
  },
);
