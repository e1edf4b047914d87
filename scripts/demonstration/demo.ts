// What peerToPeer is for, to watch: `npm run demo`.
import { parseArgs } from 'node:util';
import { findDevicePlace } from './device-place.js';
import { GuestDied, runGuestTrial } from './guest-trial.js';
import { countCauses, type Outcome, type TrialKind, type TrialReport, wasPrompt } from './news.js';
import { Progress } from './progress.js';
import { drawTimeline } from './timeline.js';
import { runTrial } from './trial.js';

const connections = 100;

const usage = `Usage: npm run demo [-- --device NAME]

Makes ${connections} connections whose accepting side speaks as soon as it can, without peerToPeer and with it, over
soft-iWARP in an emulated guest, on a wire that sends in bursts.

  --device NAME   use this RDMA device of this host and its own wire instead
  --help          show this text
`;

type RunTrial = (kind: TrialKind, onOutcome: (outcome: Outcome) => void) => Promise<TrialReport>;

const say = (...lines: string[]) => void process.stdout.write(`${lines.join('\n')}\n`);

/** Where the trials run, in words and in deed. */
function chooseStage(device: string | undefined): { place: string; plain: boolean; run: RunTrial } {
  if (device === undefined) {
    return {
      place: 'Two processes on two hosts with soft-iWARP; what the accepting host sends leaves in bursts.',
      plain: true,
      run: (kind, onOutcome) => runGuestTrial(kind, connections, onOutcome),
    };
  }
  const { place, driver } = findDevicePlace(device);
  return {
    place: `Two processes on ${device} (${driver}) at ${place.address}.`,
    // It can panic the kernel, and this is somebody's.
    plain: driver !== 'siw',
    run: (kind, onOutcome) => runTrial(kind, connections, { active: place, passive: place }, onOutcome),
  };
}

/** Runs a trial with its progress on the screen; the outcomes that there were, whatever ended it. */
async function watch(run: RunTrial, kind: TrialKind) {
  const progress = new Progress(process.stdout, connections, 'messages lost');
  const outcomes: Outcome[] = [];
  try {
    const report = await run(kind, (outcome) => {
      outcomes.push(outcome);
      progress.advance(!outcome.received);
    });
    return { outcomes, report };
  } catch (error) {
    progress.end();
    if (!(error instanceof GuestDied)) throw error;
    return { outcomes, report: undefined };
  }
}

function describeLoss(outcomes: readonly Outcome[]): string {
  const causes = [...countCauses(outcomes)].map(([cause, count]) => `${count} by ${cause}`);
  const lost = outcomes.filter(({ received }) => !received).length;
  return `${lost} of ${outcomes.length} lost${lost === 0 ? '' : `: ${causes.join('; ')}`}`;
}

async function showPlain(run: RunTrial): Promise<string> {
  const { outcomes, report } = await watch(run, 'plain');
  const loss = describeLoss(outcomes);
  if (report === undefined) {
    const ending = `${loss}; then the kernel of the guest died`;
    say(`  ${ending}: traffic that nothing gates can do that to soft-iWARP. It was a guest of its own.`);
    return ending;
  }
  say(`  ${loss}.`, `  The accepting side was told of ${report.sent} sends that they had succeeded.`);
  const late = report.delays.filter((delay) => !wasPrompt(delay)).length;
  if (late > 0) say(`  ${late} messages were sent so late, by a busy machine, that they did no harm.`);
  return loss;
}

async function demonstrate(device: string | undefined): Promise<boolean> {
  const { place, plain, run } = chooseStage(device);
  say('The accepting side of each connection sends a message as soon as it can.', place, '');

  say('1. Without peerToPeer: it sends as soon as rdma_accept() has returned.');
  const without = plain
    ? await showPlain(run)
    : 'not tried: it can panic the kernel of a host with soft-iWARP';
  if (!plain) say(`  ${without}`);

  say('', '2. With peerToPeer: it sends at the same moment, and is held until the wire can carry it.');
  const { outcomes, report } = await watch(run, 'peer-to-peer');
  const complete = report !== undefined && outcomes.length === connections;
  const kicked = outcomes.filter((outcome) => outcome.kicked).length;
  const loss = complete ? describeLoss(outcomes) : 'did not come to its end';
  say(`  ${loss}.${kicked === 0 ? '' : ` ${kicked} times a lost wake-up had to be kicked.`}`);

  if (report !== undefined) {
    say('', '3. The handshake of the last of these connections.', ...drawTimeline(report.timelines));
  }

  say('', 'Summary', `  without peerToPeer: ${without}`, `  with peerToPeer:    ${loss}`);
  return complete && outcomes.every(({ received }) => received);
}

const { values } = parseArgs({ options: { device: { type: 'string' }, help: { type: 'boolean' } } });
if (values.help) {
  say(usage.trimEnd());
} else {
  try {
    process.exitCode = (await demonstrate(values.device)) ? 0 : 1;
  } catch (error) {
    process.stderr.write(`demo: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
