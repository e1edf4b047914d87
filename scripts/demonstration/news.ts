// What the two processes of a trial, their parent and the screen tell one another.
import type { WireShape } from '#lib/guest/network.js';
import type { Step } from '#lib/peer-to-peer/handshake.js';

/** `plain`: cm and verbs, with no gate; `peer-to-peer`: connections with that option. */
export type TrialKind = 'plain' | 'peer-to-peer';

export interface TrialTask {
  readonly kind: TrialKind;
  readonly side: 'active' | 'passive';
  /** The passive side's address. */
  readonly address: string;
  /** The passive side's port; 0 on that side itself. */
  readonly port: number;
  /** One after the other. */
  readonly connections: number;
}

/** The steps of a handshake on one side, in milliseconds on the clock that both processes have: since 1970. */
export type Timeline = Readonly<Partial<Record<Step, number>>>;

/** What became of the message that the passive side of one connection sent. */
export interface Outcome {
  readonly received: boolean;
  /** Why it was not received; empty if it was. */
  readonly cause: string;
  readonly kicked: boolean;
}

export type ActiveNews =
  | { readonly outcome: Outcome }
  /** The last connection's; empty without a handshake. */
  | { readonly ended: true; readonly timeline: Timeline };

export type PassiveNews =
  | { readonly listening: number }
  | ({ readonly ended: true; readonly timeline: Timeline } & PassiveCount);

export interface PassiveCount {
  /** Completions of the passive side's sends that say success. */
  readonly sent: number;
  /**
   * Milliseconds from the call of `rdma_accept()` until the greeting was posted, by connection, null where it never
   * was: only a greeting that is posted soon shares the burst of the reply, and on a busy machine not all are. Empty
   * for `peer-to-peer`, which holds them.
   */
  readonly delays: readonly (number | null)[];
}

/** What a trial comes to. */
export interface TrialReport extends PassiveCount {
  /** By connection. */
  readonly outcomes: readonly Outcome[];
  /** Of the last connection. */
  readonly timelines: { readonly active: Timeline; readonly passive: Timeline };
}

/**
 * Whether a greeting was posted while the reply still waited for its burst. What is posted later, on a machine that had
 * other things to do, leaves in a burst of its own, and that the active side can bear.
 */
export function wasPrompt(delay: number | null): boolean {
  return delay !== null && delay < shortestBurst;
}

/** How many greetings were lost by each cause. */
export function countCauses(outcomes: readonly Outcome[]): Map<string, number> {
  const causes = new Map<string, number>();
  for (const { received, cause } of outcomes) if (!received) causes.set(cause, (causes.get(cause) ?? 0) + 1);
  return causes;
}

/** The message that each passive side sends as soon as it may. */
export const greeting = Buffer.from('the accepting side speaks first');

/** Longest wait for the greeting once the connection is there, in milliseconds; it takes some five on the wire. */
export const patience = 10_000;

const shortestBurst = 4;

/** What the passive side sends leaves in bursts, 4 to 6 ms apart: reply and greeting together. */
export const burstyWire: WireShape = { slot: [shortestBurst, 6] };

/**
 * How long the passive side thinks before it accepts, in milliseconds. The TCP acknowledgement of the request has then
 * left a wire that sends in bursts, so reply and greeting leave in one burst of their own: 4 ms after the reply, which
 * is enough for the greeting. A reply that joins the acknowledgement's burst may have no time left for company.
 */
export const reflection = 20;
