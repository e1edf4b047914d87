import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { Host } from '#lib/guest/network.js';

const run = promisify(execFile);
const examples = fileURLToPath(new URL('../../scripts/examples/', import.meta.url));

/** A program of rdma-core, or the example that does the same in Node. */
export type Implementation = 'C' | 'Node';

/** The command line of an example, by its file's name without the extension. */
export function example(name: string, ...args: readonly string[]): string[] {
  return [process.execPath, `${examples}${name}.js`, ...args];
}

export interface Ending {
  status: number | null;
  /** All that it wrote, stdout before stderr. */
  output: string;
}

/** A program that runs on a host, and is killed at the end of its test if it has not ended by then. */
export class Program {
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;

  constructor(host: Host, argv: readonly string[]) {
    const [command, ...args] = host.command(argv);
    const child = spawn(command!, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const written = Promise.all([text(child.stdout), text(child.stderr)]);
    this.ended = once(child, 'close').then(async ([status]) => ({
      status,
      output: (await written).join(''),
    }));
    onTestFinished(() => this.#end());
  }

  /** A device that is open somewhere can't be removed. */
  async #end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}

/** Resolves when `watch`, run on its host, writes what `sign` matches. */
async function shows(host: Host, program: Program, watch: readonly string[], sign: RegExp): Promise<void> {
  const [command, ...args] = host.command(watch);
  while (program.running) {
    const { stdout } = await run(command!, args);
    if (sign.test(stdout)) return;
  }
  throw new Error(`the program has ended: ${(await program.ended).output}`);
}

/** Resolves when the kernel listens for it. */
export function listens(host: Host, program: Program): Promise<void> {
  return shows(host, program, ['rdma', 'resource', 'show', 'cm_id'], /LISTEN/);
}

/** Starts a program, and resolves when `watch`, run on its host, writes what `sign` matches. */
export async function startUntil(
  host: Host,
  argv: readonly string[],
  watch: readonly string[],
  sign: RegExp,
): Promise<Program> {
  const program = new Program(host, argv);
  await shows(host, program, watch, sign);
  return program;
}

/** Starts a server, and resolves when the kernel listens for it. */
export async function startServer(host: Host, argv: readonly string[]): Promise<Program> {
  const program = new Program(host, argv);
  await listens(host, program);
  return program;
}
