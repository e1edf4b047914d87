import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ActiveNews, Outcome, PassiveNews, TrialKind, TrialReport, TrialTask } from './news.js';

/** Where one side runs: a host of the guest is one. */
export interface Place {
  readonly address: string;
  command(argv: readonly string[]): string[];
}

const program = fileURLToPath(new URL('./side.js', import.meta.url));

/** A process, and the news that it tells until it ends. */
class Side<News> {
  readonly child: ChildProcess;
  readonly #name: string;
  readonly #news: AsyncIterator<News[]>;
  readonly #stop = new AbortController();

  constructor(place: Place, task: TrialTask) {
    const [command, ...args] = place.command([process.execPath, program, JSON.stringify(task)]);
    this.#name = task.side;
    this.child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#news = on(this.child, 'message', { signal: this.#stop.signal, close: ['close'] });
  }

  async next(): Promise<News> {
    const { value, done } = await this.#news.next();
    if (done === true) {
      const { exitCode, signalCode } = this.child;
      throw new Error(`the ${this.#name} side ended too early, with ${exitCode ?? signalCode}`);
    }
    return value[0]!;
  }

  /** Ends the process, in whatever state it is: a device that is open somewhere can't be removed. */
  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}

async function endOf(passive: Side<PassiveNews>) {
  const news = await passive.next();
  if (!('ended' in news)) throw new Error('the passive side does not end');
  return news;
}

/** Makes connections from one place to another, in two processes, and counts the greetings that are lost. */
export async function runTrial(
  kind: TrialKind,
  connections: number,
  places: { active: Place; passive: Place },
  onOutcome: (outcome: Outcome) => void = () => {},
): Promise<TrialReport> {
  const { address } = places.passive;
  const passive = new Side<PassiveNews>(places.passive, {
    kind,
    side: 'passive',
    address,
    port: 0,
    connections,
  });
  try {
    const first = await passive.next();
    if (!('listening' in first)) throw new Error('the passive side does not listen');
    const port = first.listening;
    const active = new Side<ActiveNews>(places.active, { kind, side: 'active', address, port, connections });
    try {
      const outcomes: Outcome[] = [];
      let news = await active.next();
      for (; 'outcome' in news; news = await active.next()) {
        outcomes.push(news.outcome);
        onOutcome(news.outcome);
      }
      passive.child.send('end');
      const { sent, delays, timeline } = await endOf(passive);
      return { outcomes, sent, delays, timelines: { active: news.timeline, passive: timeline } };
    } finally {
      await active.end();
    }
  } finally {
    await passive.end();
  }
}
