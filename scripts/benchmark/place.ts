import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { RunNews, RunTask } from './run.js';

/** Seconds; everything, at five pairs, takes some twenty minutes. */
const timeLimit = 3600;

/** The one siw device of a guest without hosts. */
const guestDevice = { device: 'siw0', address: '10.77.0.1', pinned: true };

const guest = fileURLToPath(import.meta.resolve('#lib/guest/cli.js'));
const program = fileURLToPath(new URL('./run.js', import.meta.url));

/** Measures in a guest of its own. */
export function runInGuest(task: Pick<RunTask, 'names' | 'pairs'>): AsyncGenerator<RunNews> {
  const command = [process.execPath, program, JSON.stringify({ ...task, ...guestDevice })];
  return run([guest, '--time-limit', String(timeLimit), '--', ...command]);
}

/** Measures on a device of this host. */
export function runOnHost(task: Omit<RunTask, 'pinned'>): AsyncGenerator<RunNews> {
  return run([program, JSON.stringify({ ...task, pinned: false })]);
}

async function* run(args: readonly string[]): AsyncGenerator<RunNews> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line) as RunNews;
  const [status, signal] = await exit;
  if (status !== 0) throw new Error(`the measuring has ended with ${status ?? signal}`);
}
