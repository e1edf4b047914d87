// Measures on this machine: `node run.js TASK`, with the task as JSON and news as lines of JSON. In the guest this is
// the program that runs there.
import { type Measurement, measure, type Result } from './measurement.js';
import { measurements } from './measurements.js';
import { anywhere, onOneEach, Sides } from './side-process.js';

export interface RunTask {
  readonly device: string;
  readonly address: string;
  readonly names: readonly string[];
  readonly pairs: number;
  /** Whether each side gets a processor to itself. */
  readonly pinned: boolean;
}

export type RunNews =
  | { readonly progress: { readonly title: string; readonly pair: number } }
  | { readonly result: Result }
  | { readonly failure: { readonly title: string; readonly message: string } };

const { device, address, names, pairs, pinned } = JSON.parse(process.argv[2]!) as RunTask;
const pinning = pinned ? onOneEach : anywhere;
const tell = (news: RunNews) => void process.stdout.write(`${JSON.stringify(news)}\n`);

/** Processes stay from one measurement to the next, and so does their compiled code. */
const allSides = new Map<string, Sides>();

function sidesWith(nodeOptions: readonly string[]): Sides {
  const key = nodeOptions.join(' ');
  const sides = allSides.get(key) ?? new Sides(pinning, nodeOptions);
  allSides.set(key, sides);
  return sides;
}

async function endSides(atOnce = false): Promise<void> {
  await Promise.all([...allSides.values()].map((sides) => sides.end(atOnce)));
  allSides.clear();
}

async function run(measurement: Measurement): Promise<void> {
  const { title, nodeOptions = [] } = measurement;
  try {
    const onPair = (pair: number) => tell({ progress: { title, pair } });
    onPair(0);
    const stage = { device, address, sides: sidesWith(nodeOptions), pinning };
    tell({ result: await measure(measurement, stage, pairs, onPair) });
  } catch (error) {
    tell({ failure: { title, message: (error as Error).message } });
    // In what state they are nobody knows.
    await endSides(true);
  }
}

for (const measurement of measurements) {
  if (names.includes(measurement.name)) await run(measurement);
}
await endSides();
