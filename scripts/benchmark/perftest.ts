import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Stage } from './measurement.js';
import { latencySample, type Sample } from './sample.js';

/** perftest's first port; the next run takes the next, since a port may rest after its use. */
let port = 18600;

/** Milliseconds between attempts to reach a server that has said that it waits and may not listen yet. */
const patience = 50;
const attempts = 40;

export interface PerftestRun {
  readonly tool: string;
  readonly args: readonly string[];
  /** Is told the client's process id, also of one that can't connect yet. */
  readonly onClient?: (pid: number) => void;
  /** Column of the result line. */
  readonly column: 't_typical' | 't_avg' | 'bandwidth' | 'rate';
}

const columns = { t_typical: 4, t_avg: 5, bandwidth: 3, rate: 4 } as const;

async function runClient(
  [command, ...args]: readonly string[],
  onClient: (pid: number) => void,
): Promise<string | undefined> {
  const client = spawn(command!, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  onClient(client.pid!);
  const exit = once(client, 'exit');
  const lines: string[] = [];
  for await (const line of createInterface({ input: client.stdout })) lines.push(line);
  const [status] = await exit;
  return status === 0 ? lines.join('\n') : undefined;
}

/** Runs both sides of a tool of perftest over rdma_cm, and takes one column of the client's result. */
export async function runPerftest(
  stage: Stage,
  { tool, args, column, onClient = () => {} }: PerftestRun,
): Promise<Sample> {
  const all = ['-R', '-F', '-d', stage.device, '-p', String(port++), ...args];
  const [command, ...before] = [...stage.pinning.server, 'stdbuf', '-oL', tool];
  const server = spawn(command!, [...before, ...all], { stdio: ['ignore', 'pipe', 'ignore'] });
  const exit = once(server, 'exit');
  try {
    for await (const line of createInterface({ input: server.stdout })) {
      if (line.includes('Waiting for client')) break;
    }
    server.stdout.resume();
    for (let attempt = 0; attempt < attempts && server.exitCode === null; attempt++) {
      await delay(patience);
      const output = await runClient([...stage.pinning.client, tool, ...all, stage.address], onClient);
      if (output !== undefined) return parseOutput(output, tool, columns[column]);
    }
    throw new Error(`${tool} ${all.join(' ')} has failed`);
  } finally {
    server.kill('SIGKILL');
    await exit;
  }
}

/** What `-H` lists, one in a line behind its number. */
const listed = /^\d+, ([\d.]+)$/gm;

function parseOutput(output: string, tool: string, column: number): Sample {
  const list = Float64Array.from(output.matchAll(listed), ([, value]) => Number(value));
  const value = parseResult(output, tool, column);
  return list.length === 0 ? { value } : { ...latencySample(list), value };
}

function parseResult(output: string, tool: string, column: number): number {
  const row = output
    .split('\n')
    .map((line) => line.trim())
    .find((line) => /^\d+\s+\d+\s+[\d.]+/.test(line));
  const value = Number(row?.split(/\s+/)[column]);
  if (!Number.isFinite(value)) throw new Error(`the output of ${tool} has no result:\n${output}`);
  return value;
}
