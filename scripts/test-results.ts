// test-results FOLDER [--summary] PHASE...: what came of phases of scripts/test, from FOLDER/PHASE.status (exit status and
// seconds) and vitest's report FOLDER/PHASE.json, if it wrote one. One line for each phase; with --summary also what
// has failed, by name, and the sum; it then fails if anything has, or nothing has passed.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The part of vitest's JSON report that matters here. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
    }[];
  }[];
}

interface Result {
  readonly phase: string;
  readonly seconds: number;
  readonly passed: number;
  readonly skipped: number;
  /** What it was, and the first line of why. */
  readonly failures: readonly string[];
}

function readReport(file: string): Report | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${file} can't be read`, { cause: error });
  }
}

const firstLine = (text: string) => text.trimStart().split('\n', 1)[0]!;

function resultOf(folder: string, phase: string): Result {
  const [status, seconds] = readFileSync(join(folder, `${phase}.status`), 'utf8')
    .split(' ')
    .map(Number);
  const report = readReport(join(folder, `${phase}.json`));
  const failures: string[] = [];
  let passed = 0;
  let skipped = 0;
  for (const { name, status, message, assertionResults } of report?.testResults ?? []) {
    const file = relative('.', name);
    let failed = false;
    for (const { fullName, status, failureMessages } of assertionResults) {
      if (status === 'passed') passed++;
      else if (status !== 'failed') skipped++;
      else {
        failed = true;
        failures.push(`${file} > ${fullName}: ${firstLine(failureMessages?.[0] ?? '')}`);
      }
    }
    // It could not be loaded, or a hook of its own failed.
    if (status === 'failed' && !failed) failures.push(`${file}: ${firstLine(message)}`);
  }
  // A guest that died, an error that no test caught, a phase of another kind.
  if (status !== 0 && failures.length === 0) failures.push(`ended with status ${status}: see ${phase}.log`);
  else if (report === null && status === 0) passed = 1;
  return { phase, seconds: seconds!, passed, skipped, failures };
}

const [folder, ...rest] = process.argv.slice(2);
const summary = rest[0] === '--summary';
const phases = summary ? rest.slice(1) : rest;
if (folder === undefined || phases.length === 0)
  throw new Error('Usage: test-results FOLDER [--summary] PHASE...');

const results = phases.map((phase) => resultOf(folder, phase));
for (const { phase, seconds, passed, skipped, failures } of results) {
  const counts = [`${passed} passed`, `${failures.length} failed`, `${skipped} skipped`, `${seconds} s`];
  console.log(`${phase.padEnd(20)}${counts.map((count) => count.padStart(14)).join('')}`);
}
if (summary) {
  for (const { phase, failures } of results) {
    for (const failure of failures) console.log(`FAILED ${phase}: ${failure}`);
  }
  const sum = (of: (result: Result) => number) => results.reduce((total, result) => total + of(result), 0);
  const passed = sum((result) => result.passed);
  const failed = sum((result) => result.failures.length);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
