import type { Action, Request, Timer } from '#lib/peer-to-peer/handshake.js';

// Every order in which the world can act on a handshake. What the handshake has to do about it is worked out here
// from the history alone. The world repeats itself, fires timers that were disarmed, and completes what was posted.

export type Happening =
  | 'accepted'
  | 'established'
  | 'received GO'
  | 'received message'
  | 'queued'
  | 'releaseSends'
  | 'failed'
  | `completed ${Request}`
  | `timer ${Timer}`;

/** A handshake and what it owes to its history. */
export interface Scenario {
  title: string;
  create(): { step(happening: Happening, at: number): Action[]; settled: () => boolean };
  /** What happens of itself, and how often at most. */
  unasked: Partial<Record<Happening, number>>;
  /** What has to be posted on ESTABLISHED, in this order. */
  requests: Request[];
  isEstablished(history: Set<Happening>): boolean;
  isReleased(history: Set<Happening>): boolean;
  /** Whether the kick timer has to run; it is told of receives only after ESTABLISHED. */
  isKickDue(history: Set<Happening>): boolean;
  /** Whether GO is waited for as the first receive. */
  expectsGo: boolean;
  isDeadlineSet(history: Set<Happening>): boolean;
}

/** What an observer without any knowledge of the handshake's insides sees. */
interface Observation {
  history: Set<Happening>;
  counts: Map<Happening, number>;
  /** The actions so far, without the steps of the timeline. */
  actions: string[];
  armed: Set<Timer>;
  everArmed: Set<Timer>;
  fate: 'open' | 'released' | 'failed';
  settled: boolean;
}

function demand(
  condition: boolean,
  what: string,
  path: readonly Happening[],
  actions: readonly string[],
): void {
  if (!condition) throw new Error(`${what}: after ${path.join(', ')} it did ${actions.join(', ')}`);
}

/** Replays one order from the start and holds each of its steps against the scenario. */
function replay(scenario: Scenario, path: readonly Happening[]): Observation {
  const { step, settled } = scenario.create();
  const seen: Observation = {
    history: new Set(),
    counts: new Map(),
    actions: [],
    armed: new Set(),
    everArmed: new Set(),
    fate: 'open',
    settled: false,
  };
  for (const [index, happening] of path.entries()) {
    observe(scenario, seen, happening, step(happening, index), path.slice(0, index + 1));
    seen.settled = settled();
  }
  return seen;
}

function observe(
  scenario: Scenario,
  seen: Observation,
  happening: Happening,
  actions: readonly Action[],
  path: readonly Happening[],
): void {
  const expect = (condition: boolean, what: string) => demand(condition, what, path, seen.actions);
  if (seen.settled) expect(actions.length === 0, 'a settled handshake is silent');

  const { history, armed } = seen;
  const brokenWord = scenario.expectsGo && happening === 'received message' && !history.has('received GO');
  const timedOut = happening === 'timer deadline' && armed.has('deadline');
  const kicks = happening === 'timer kick' && armed.has('kick');
  const relevant = !(
    happening.startsWith('received') &&
    scenario.requests.length > 0 &&
    !history.has('established')
  );
  const before = seen.actions.length;
  if (happening.startsWith('timer ')) armed.delete(happening.slice('timer '.length) as Timer);
  seen.counts.set(happening, (seen.counts.get(happening) ?? 0) + 1);
  if (relevant) history.add(happening);

  for (const action of actions) {
    switch (action.type) {
      case 'arm':
        expect(!armed.has(action.timer), 'a timer is armed once at a time');
        armed.add(action.timer);
        seen.everArmed.add(action.timer);
        seen.actions.push(`arm ${action.timer}`);
        break;
      case 'disarm':
        expect(armed.delete(action.timer), 'only what is armed is disarmed');
        seen.actions.push(`disarm ${action.timer}`);
        break;
      case 'post':
        expect(seen.actions.includes('established'), 'nothing is posted before ESTABLISHED');
        expect(seen.fate !== 'failed', 'nothing is posted after a failure');
        seen.actions.push(`post ${action.request}`);
        break;
      case 'step':
        break;
      default:
        seen.actions.push(action.type);
    }
  }

  if (seen.fate === 'open') {
    if (happening === 'failed' || brokenWord || timedOut) seen.fate = 'failed';
    else if (scenario.isReleased(history)) seen.fate = 'released';
  }
  const count = (action: string) => seen.actions.filter((done) => done === action).length;
  const posts = seen.actions.filter((done) => done.startsWith('post ') && done !== 'post kick');
  const established = seen.actions.indexOf('established');
  const released = seen.actions.indexOf('release');

  expect(
    count('release') === (seen.fate === 'released' ? 1 : 0),
    'sends are released once, on their condition',
  );
  expect(
    count('fail') === (seen.fate === 'failed' ? 1 : 0),
    'a failure is told once, and not after the release',
  );
  expect(
    released === -1 || (established !== -1 && established < released),
    'ESTABLISHED comes before the release',
  );
  expect(count('established') <= 1, 'ESTABLISHED is told once');
  if (seen.fate !== 'failed') {
    expect((established !== -1) === scenario.isEstablished(history), 'ESTABLISHED is told when it is known');
  }
  const expected = established === -1 ? [] : scenario.requests.map((request) => `post ${request}`);
  expect(posts.join() === expected.join(), 'the requests are posted once and in order');
  expect(
    released === -1 || posts.every((post) => seen.actions.indexOf(post) < released),
    'sends follow the requests',
  );
  expect(seen.actions.slice(before).includes('post kick') === kicks, 'the kick comes when its time has');
  expect(count('post kick') <= 1, 'one kick is enough');
  const swallows = scenario.expectsGo && happening === 'received GO' && seen.counts.get(happening) === 1;
  if (seen.fate !== 'failed') {
    expect(seen.actions.slice(before).includes('swallow') === swallows, 'GO is swallowed, and nothing else');
  }

  const open = seen.fate === 'open';
  const ended = seen.fate === 'failed' || history.has('failed');
  const kickDue = !ended && !history.has('timer kick') && scenario.isKickDue(history);
  expect(armed.has('kick') === kickDue, 'the kick timer runs as long as nothing proves progress');
  expect(
    armed.has('deadline') === (open && scenario.isDeadlineSet(history)),
    'the deadline ends with the wait',
  );
  expect(!armed.has('held') || open, 'nobody is warned of sends that flow');
}

/** What can happen next. */
function possible(scenario: Scenario, seen: Observation): Happening[] {
  const happenings: Happening[] = [];
  const upTo = (happening: Happening, most: number) => {
    if ((seen.counts.get(happening) ?? 0) < most) happenings.push(happening);
  };
  for (const [happening, most] of Object.entries(scenario.unasked)) upTo(happening as Happening, most);
  for (const request of ['read', 'write', 'go', 'kick'] as const) {
    if (seen.actions.includes(`post ${request}`)) upTo(`completed ${request}`, 1);
  }
  for (const timer of seen.everArmed) upTo(`timer ${timer}`, seen.armed.has(timer) ? 1 : 2);
  return happenings;
}

/** Walks every order until the handshake settles, and one happening beyond. */
export function explore(scenario: Scenario): { fates: Set<string>; settled: Set<boolean> } {
  const result = { fates: new Set<string>(), settled: new Set<boolean>() };
  const walk = (path: readonly Happening[], wasSettled: boolean) => {
    const seen = replay(scenario, path);
    result.fates.add(seen.fate);
    result.settled.add(seen.settled);
    if (seen.settled) demand(seen.armed.size === 0, 'no timer is left behind', path, seen.actions);
    if (wasSettled) return;
    for (const next of possible(scenario, seen)) walk([...path, next], seen.settled);
  };
  walk([], false);
  return result;
}
