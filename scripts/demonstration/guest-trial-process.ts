// Runs a trial inside the guest: `node guest-trial-process.js KIND CONNECTIONS`. Tells its news as lines of JSON.
import { createHosts } from '#lib/guest/network.js';
import type { Outcome, TrialKind, TrialReport } from './news.js';
import { burstyWire } from './news.js';
import { runTrial } from './trial.js';

export type GuestNews = { outcome: Outcome } | { report: TrialReport };

const [kind, connections] = process.argv.slice(2);
const tell = (news: GuestNews) => void process.stdout.write(`${JSON.stringify(news)}\n`);

await using network = await createHosts(2);
const [passive, active] = [network.host(1), network.host(2)];
await passive.wire.shape(burstyWire);
const report = await runTrial(kind as TrialKind, Number(connections), { active, passive }, (outcome) =>
  tell({ outcome }),
);
tell({ report });
