import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cell, devices, nameOf } from '../support/faults/cell.js';
import { generateMatrix } from '../support/faults/exclusions.js';
import { expectedEnds } from '../support/faults/expectations.js';
import { Lane } from '../support/faults/lane.js';
import type { Result } from '../support/faults/messages.js';
import { sampleOf } from '../support/faults/sample.js';

const { cells, excluded } = generateMatrix();
const wanted = new RegExp(process.env.NODE_RDMA_TEST_CELLS ?? '');
const chosen = (process.env.NODE_RDMA_TEST_LONG === undefined ? sampleOf(cells) : cells).filter((cell) =>
  wanted.test(nameOf(cell)),
);

const runs = new Map<Cell, Promise<Result>>();
const lanes: Lane[] = [];

/** Each kind of device has a wire of its own, so the two are run at the same time. */
async function runAll(device: Cell['device']): Promise<Lane> {
  const lane = await Lane.open(device);
  let last: Promise<unknown> = Promise.resolve();
  for (const cell of chosen.filter((cell) => cell.device === device)) {
    const run = last.then(() => lane.run(cell));
    // At once, as a kernel that dies takes with it what was not said.
    run.then(
      ({ end }) => console.log(`${nameOf(cell)} => ${end}`),
      (error) => console.log(`${nameOf(cell)} => ${error}`),
    );
    last = run.catch(() => {});
    runs.set(cell, run);
  }
  return lane;
}

beforeAll(async () => {
  const rules = new Map<string, number>();
  for (const { by } of excluded) rules.set(by.name, (rules.get(by.name) ?? 0) + 1);
  console.log(`${chosen.length} of ${cells.length} cells are run, ${excluded.length} are excluded:`);
  for (const [name, count] of rules) console.log(`  ${count} ${name}`);
  for (const device of devices) lanes.push(await runAll(device));
}, 240_000);

afterAll(async () => {
  for (const lane of lanes) await lane.close();
}, 240_000);

describe('a connection keeps its promises', () => {
  test.each(chosen.map((cell) => [nameOf(cell), cell] as const))(
    '%s',
    { timeout: 240_000 },
    async (_, cell) => {
      const result = await runs.get(cell)!;
      expect(result.broken).toEqual([]);
      expect(expectedEnds(cell), 'a row of the table').toBeDefined();
      expect(expectedEnds(cell)).toContain(result.end);
    },
  );

  test.each(devices)(
    'and %s has lost nothing in the process that had all of them',
    { timeout: 120_000 },
    async (device) => {
      expect(await lanes[devices.indexOf(device)]!.finish()).toEqual({});
    },
  );
});
