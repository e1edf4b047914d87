import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { exitStatus } from '#lib/guest/failure.js';
import type { GuestNews } from './guest-trial-process.js';
import type { Outcome, TrialKind, TrialReport } from './news.js';

/** Seconds; a trial of a hundred connections takes some ten. */
const timeLimit = 300;

const guest = fileURLToPath(import.meta.resolve('#lib/guest/cli.js'));
const program = fileURLToPath(new URL('./guest-trial-process.js', import.meta.url));

/** The kernel of the guest has died under the trial; its last words are on stderr. */
export class GuestDied extends Error {}

/** Runs a trial between two hosts in a guest of its own. */
export async function runGuestTrial(
  kind: TrialKind,
  connections: number,
  onOutcome: (outcome: Outcome) => void,
): Promise<TrialReport> {
  const command = [process.execPath, program, kind, String(connections)];
  const child = spawn(process.execPath, [guest, '--time-limit', String(timeLimit), '--', ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  let report: TrialReport | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const news = JSON.parse(line) as GuestNews;
    if ('outcome' in news) onOutcome(news.outcome);
    else report = news.report;
  }
  const [status, signal] = await exit;
  if (report !== undefined) return report;
  if (status === exitStatus.guestDied) throw new GuestDied('the kernel of the guest has died');
  throw new Error(`the trial in the guest ended without a result, with ${status ?? signal}`);
}
