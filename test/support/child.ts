import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export interface ChildResult {
  /** Exit status, or the name of the signal that ended it. */
  status: number | NodeJS.Signals;
  stdout: string;
  stderr: string;
}

const compiled = fileURLToPath(new URL('../..', import.meta.url));

/** Starts a compiled program, by its path from the project's folder, in a Node process of its own. */
export function startChild(program: string, args: readonly string[], nodeOptions: readonly string[] = []) {
  return spawn(process.execPath, [...nodeOptions, `${compiled}${program}`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** The end of a child and all it wrote. */
export async function endOf(child: ReturnType<typeof startChild>): Promise<ChildResult> {
  const [[status, signal], stdout, stderr] = await Promise.all([
    once(child as ChildProcess, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { status: status ?? signal!, stdout, stderr };
}

/** Runs a compiled program to its end. */
export function runChild(
  program: string,
  args: readonly string[],
  nodeOptions: readonly string[] = [],
): Promise<ChildResult> {
  return endOf(startChild(program, args, nodeOptions));
}
