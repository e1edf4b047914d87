/** What a rank knows of itself and one other when that one asks for a connection. */
export interface PairState {
  readonly self: number;
  readonly peer: number;
  /** Connections that the two have had before. */
  readonly generation: number;
  /** This rank has asked the other one, and has no answer yet. */
  readonly asking: boolean;
  /** There is a connection, or one is being accepted. */
  readonly connected: boolean;
}

/**
 * What to do with a request. `'replace'`: accept it, and end the connection that this side still has: the other one's
 * end of it is dead.
 */
export type Verdict = 'accept' | 'replace' | 'superseded' | 'stale';

/**
 * One connection for a pair, also when both ask at once. Both sides know this rule: of two requests that cross the one
 * of the lower rank counts. Whether they cross is seen from the generation, which both count: a request of the current
 * one that meets a connection has crossed the request that made it.
 */
export function judgeRequest(state: PairState, requested: number): Verdict {
  const { self, peer, generation, asking, connected } = state;
  if (requested < generation) return 'stale';
  if (requested > generation) return connected ? 'replace' : 'accept';
  if (connected) return 'superseded';
  return asking && self < peer ? 'superseded' : 'accept';
}
