import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const exec = promisify(execFile);

export interface CommandEnd {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** `node-rdma ARGS`, behind the words of `prefix`. */
export async function nodeRdma(args: readonly string[], prefix: readonly string[] = []): Promise<CommandEnd> {
  const [program, ...rest] = [...prefix, process.execPath, main, ...args];
  const child = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [[status], stdout, stderr] = await Promise.all([
    once(child as ChildProcess, 'close') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { status, stdout, stderr };
}

/** Runs a program of this machine to its end, which must be a good one. */
export async function run(program: string, ...args: string[]): Promise<string> {
  return (await exec(program, args)).stdout;
}

/** A `node-rdma` that goes on until it is told to end; its JSON lines are read one after the other. */
export class RunningCommand {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown[]>;

  constructor(...args: string[]) {
    const child = spawn(process.execPath, [main, ...args, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    this.#ended = once(child as ChildProcess, 'close');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await this.#ended;
    });
  }

  /** The next thing that it says. */
  async next(): Promise<Record<string, unknown>> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the command has ended');
    return JSON.parse(value) as Record<string, unknown>;
  }

  /** What it says up to, and with, the first of that type. */
  async nextOf(type: string): Promise<Record<string, unknown>> {
    for (;;) {
      const said = await this.next();
      if (said.type === type) return said;
    }
  }

  interrupt(): void {
    this.#child.kill('SIGINT');
  }

  async status(): Promise<number | null> {
    const [status] = await this.#ended;
    return status as number | null;
  }
}
