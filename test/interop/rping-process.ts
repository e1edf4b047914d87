import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { Host } from '#lib/guest/network.js';

const run = promisify(execFile);
const command = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** librdmacm's rping, or `node-rdma ping`. */
export type Implementation = 'C' | 'Node';

export interface PingRun {
  status: number | null;
  /** All that it wrote. */
  output: string;
  /** The texts that were shown. */
  texts: string[];
}

/** An rping that runs on a host. */
export class RpingProcess {
  readonly ended: Promise<PingRun>;
  readonly #child: ChildProcess;

  constructor(implementation: Implementation, host: Host, args: readonly string[]) {
    const argv = implementation === 'C' ? ['rping', '-v'] : [process.execPath, command, 'ping', '-v'];
    const [program, ...rest] = host.command([...argv, ...args]);
    const child = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const written = Promise.all([text(child.stdout), text(child.stderr)]);
    this.ended = once(child, 'close').then(async ([status]) => {
      const output = (await written).join('');
      return { status, output, texts: textsIn(output) };
    });
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

function textsIn(output: string): string[] {
  return [...output.matchAll(/^(?:server )?ping data: (.*)$/gm)].map(([, shown]) => shown!);
}

/** Starts a server, and resolves when the kernel listens for it. */
export async function startServer(
  implementation: Implementation,
  host: Host,
  address: string,
  args: readonly string[],
): Promise<RpingProcess> {
  const role = implementation === 'C' ? ['-s', '-a', address] : ['--listen', '--once', address];
  const server = new RpingProcess(implementation, host, [...role, ...args]);
  const [program, ...rest] = host.command(['rdma', 'resource', 'show', 'cm_id']);
  while (server.running) {
    const { stdout } = await run(program!, rest);
    if (stdout.includes('LISTEN')) return server;
  }
  throw new Error(`the server does not listen: ${(await server.ended).output}`);
}
