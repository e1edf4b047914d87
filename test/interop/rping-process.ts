import { fileURLToPath } from 'node:url';
import type { Host } from '#lib/guest/network.js';
import { type Ending, listens, Program } from './program.js';

const command = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** librdmacm's rping, or `node-rdma ping`. */
export type Implementation = 'C' | 'Node';

export interface PingRun extends Ending {
  /** The texts that were shown. */
  texts: string[];
}

/** An rping that runs on a host. */
export class RpingProcess {
  readonly program: Program;

  constructor(implementation: Implementation, host: Host, args: readonly string[]) {
    const argv = implementation === 'C' ? ['rping', '-v'] : [process.execPath, command, 'ping', '-v'];
    this.program = new Program(host, [...argv, ...args]);
  }

  get ended(): Promise<PingRun> {
    return this.program.ended.then((ending) => ({ ...ending, texts: textsIn(ending.output) }));
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
  await listens(host, server.program);
  return server;
}
