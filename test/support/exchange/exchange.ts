import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Host } from '#lib/guest/network.js';
import type { ExchangeNews, ExchangeReport, ExchangeTask } from './report.js';

const program = fileURLToPath(new URL('./exchange-process.js', import.meta.url));

export type ExchangeOptions = Omit<Partial<ExchangeTask>, 'side' | 'address' | 'port'>;

/** What both sides of an exchange had in the end. */
export interface Exchange {
  active: ExchangeReport;
  passive: ExchangeReport;
}

/** A process on a host, and the news that it tells. */
function start(host: Host, task: ExchangeTask): { child: ChildProcess; news: () => Promise<ExchangeNews> } {
  const [command, ...args] = host.command([process.execPath, program, JSON.stringify(task)]);
  const child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const exit = once(child, 'exit').then(([status, signal]) => {
    throw new Error(`the ${task.side} side ended with ${status ?? signal} before it had told all`);
  });
  exit.catch(() => {});
  const told: ExchangeNews[] = [];
  let wanted: ((news: ExchangeNews) => void) | undefined;
  child.on('message', (news) => {
    if (wanted === undefined) told.push(news as ExchangeNews);
    else wanted(news as ExchangeNews);
    wanted = undefined;
  });
  const news = () =>
    Promise.race([
      exit,
      new Promise<ExchangeNews>((resolve) => {
        const next = told.shift();
        if (next === undefined) wanted = resolve;
        else resolve(next);
      }),
    ]);
  return { child, news };
}

function reportIn(news: ExchangeNews): ExchangeReport {
  if (!('report' in news)) throw new Error('a report was due');
  return news.report;
}

/** Runs an exchange between two hosts, the second of which accepts, and prints what became of it. */
export async function exchange(
  name: string,
  hosts: { active: Host; passive: Host },
  options: ExchangeOptions,
): Promise<Exchange> {
  const common = {
    address: hosts.passive.address,
    port: 0,
    connections: 100,
    parallel: 20,
    messages: 1,
    heavy: 0,
    heavyMessages: 200,
    peerToPeer: true,
    timeout: 60_000,
    ...options,
  };
  const started = performance.now();
  const passive = start(hosts.passive, { ...common, side: 'passive' });
  try {
    const listening = await passive.news();
    if (!('listening' in listening)) throw new Error('a port was due');
    const active = start(hosts.active, { ...common, port: listening.listening, side: 'active' });
    try {
      const result: Partial<Exchange> = { active: reportIn(await active.news()) };
      passive.child.send('no more connections');
      result.passive = reportIn(await passive.news());
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(
        `${name}: ${seconds} s, active ${JSON.stringify(result.active)}, passive ${JSON.stringify(result.passive)}`,
      );
      return result as Exchange;
    } finally {
      active.child.kill('SIGKILL');
    }
  } finally {
    passive.child.kill('SIGKILL');
  }
}

/** Nothing failed, and nothing was lost, duplicated, changed or reordered. */
export function nothingLost(exchanged: Exchange): Record<keyof Exchange, Partial<ExchangeReport>> {
  const pick = ({ failed, lost, wrong, completed }: ExchangeReport) => ({ failed, lost, wrong, completed });
  return { active: pick(exchanged.active), passive: pick(exchanged.passive) };
}

/** What {@link nothingLost} returns when that is so. */
export function complete(connections: number): ReturnType<typeof nothingLost> {
  const side = { failed: {}, lost: 0, wrong: 0, completed: connections };
  return { active: side, passive: side };
}
