// One side of a trial, in a process of its own: `node side.js TASK`, with the task as JSON and news over IPC.
import type { ActiveNews, PassiveNews, TrialTask } from './news.js';
import { runPeerToPeerActive, runPeerToPeerPassive } from './peer-to-peer-sides.js';
import { runPlainActive, runPlainPassive } from './plain-sides.js';

const task = JSON.parse(process.argv[2]!) as TrialTask;
const tell = (news: ActiveNews | PassiveNews) => void process.send!(news);

if (task.side === 'active') {
  const run = task.kind === 'plain' ? runPlainActive : runPeerToPeerActive;
  await run(task, tell);
} else {
  const run = task.kind === 'plain' ? runPlainPassive : runPeerToPeerPassive;
  await run(task, tell, new Promise((resolve) => process.once('message', () => resolve())));
}
process.disconnect();
