import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Stage } from './measurement.js';
import type { Sample } from './sample.js';

// This file runs as compiled; the source of the C program lies where its own does.
const source = fileURLToPath(new URL('../../../scripts/benchmark/connection-rate.c', import.meta.url));

let compiled: string | undefined;

function compile(): string {
  if (compiled === undefined) {
    compiled = join(tmpdir(), `node-rdma-connection-rate-${process.pid}`);
    execFileSync('cc', ['-O2', '-o', compiled, source, '-lrdmacm', '-libverbs']);
  }
  return compiled;
}

/** Runs both sides of connection-rate.c. */
export async function runConnectionRate(
  { address, pinning }: Stage,
  mode: 'rate' | 'idle',
  connections: number,
): Promise<Sample> {
  const program = compile();
  const [command, ...before] = [...pinning.server, program];
  const server = spawn(command!, [...before, 'server', address], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = once(server, 'exit');
  try {
    const [port] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
    const [command, ...before] = [...pinning.client, program];
    const client = spawn(command!, [...before, mode, address, port, String(connections)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(client, 'exit');
    let output = '';
    for await (const chunk of client.stdout) output += chunk;
    const [status] = await ended;
    if (status !== 0) throw new Error(`connection-rate ${mode} has failed`);
    return { value: Number(output) };
  } finally {
    server.stdin.end();
    await exit;
  }
}
