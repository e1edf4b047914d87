// What peerToPeer is for, to watch: `npm run demo`.
import { parseArgs } from 'node:util';
import type { DeviceSummary } from 'node-rdma/verbs';
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

interface Stage {
  /** Where the trials run. */
  readonly place: string;
  /** Why there is no trial without the option; null if there is one. */
  readonly omitted: string | null;
  readonly run: RunTrial;
}

function chooseStage(name: string | undefined): Stage {
  if (name === undefined) {
    return {
      place: 'Two processes on two hosts with soft-iWARP; what the accepting host sends leaves in bursts.',
      omitted: null,
      run: (kind, onOutcome) => runGuestTrial(kind, connections, onOutcome),
    };
  }
  const { place, device } = findDevicePlace(name);
  return {
    place: `Two processes on ${name} (${device.driver}) at ${place.address}.`,
    omitted: whyOmitted(device),
    run: (kind, onOutcome) => runTrial(kind, connections, { active: place, passive: place }, onOutcome),
  };
}

function whyOmitted({ driver, transport }: DeviceSummary): string | null {
  if (driver === 'siw') return 'not tried: it can panic the kernel of a host with soft-iWARP';
  // Each takes a time-out of the transport's, a second and more.
  if (transport !== 'iwarp') return 'not tried: RoCE and InfiniBand send again what came too early';
  return null;
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
  const late = outcomes.filter(({ received }, i) => received && !wasPrompt(report.delays[i] ?? null)).length;
  if (late > 0) say(`  ${late} of those that arrived were not sent right then: the machine was busy.`);
  return loss;
}

async function demonstrate(device: string | undefined): Promise<boolean> {
  const { place, omitted, run } = chooseStage(device);
  say('The accepting side of each connection sends a message as soon as it can.', place, '');

  say('1. Without peerToPeer: it sends as soon as rdma_accept() has returned.');
  if (omitted !== null) say(`  ${omitted}.`);
  const without = omitted ?? (await showPlain(run));

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
