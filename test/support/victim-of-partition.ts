/** Connects into a partition again and again while a timer runs, and tells how late the timer was. */
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node-rdma';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** How the connects ended, the shortest time that one hung, and how late the timer's ticks were, sorted. */
export interface Hung {
  readonly type: 'done';
  readonly codes: readonly (string | undefined)[];
  readonly hung: number;
  readonly quiet: readonly number[];
  readonly hanging: readonly number[];
}

/** `ready`: the peer's link-layer address is known, and what follows gets as far as the TCP connection. */
export type Told = { type: 'ready' } | Hung;

const period = 5;
const count = 20;
/** Milliseconds: far longer than what a connection takes, and shorter than the kernel's own patience. */
const timeout = 5000;

function tell(told: Told): void {
  process.send?.(told);
}

/** Runs a timer until `work` is done: by how many milliseconds each of its ticks was late. */
async function latenessDuring(work: Promise<unknown>): Promise<number[]> {
  const lateness: number[] = [];
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    lateness.push(now - last - period);
    last = now;
  }, period);
  await work;
  clearInterval(timer);
  return lateness.sort((a, b) => a - b);
}

async function failureOf({ host, port }: Target): Promise<{ code: string | undefined; after: number }> {
  const start = performance.now();
  const connection = connect({ host, port, timeout });
  try {
    await connection.established;
    return { code: undefined, after: 0 };
  } catch (error) {
    return { code: (error as { code?: string }).code, after: performance.now() - start };
  }
}

/** Resolves when so many connections of this process have called `rdma_connect()`. */
function connecting(connections: number): Promise<void> {
  return new Promise((resolve) => {
    let called = 0;
    subscribe('rdma:connection:step', (message) => {
      if ((message as { step: string }).step === 'connecting' && ++called === connections) resolve();
    });
  });
}

async function hang(target: Target): Promise<void> {
  const quiet = await latenessDuring(delay(timeout));
  const called = connecting(count);
  const failing = Promise.all(Array.from({ length: count }, () => failureOf(target)));
  // To make twenty connections ready is work, and takes its time; from here on they hang.
  await called;
  const hanging = await latenessDuring(failing);
  const failures = await failing;
  const codes = failures.map(({ code }) => code);
  tell({ type: 'done', codes, hung: Math.min(...failures.map(({ after }) => after)), quiet, hanging });
}

process.once('message', async (target: Target) => {
  const first = connect(target);
  await first.established;
  await first.close();
  process.once('message', () => void hang(target));
  tell({ type: 'ready' });
});

process.on('disconnect', () => process.exit());
