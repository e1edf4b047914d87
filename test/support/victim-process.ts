import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ConnectOptions, ServerOptions } from 'node-rdma';
import { onTestFinished } from 'vitest';
import type { PeerHost } from './mpa/remote-peer.js';

/** What the process plays. */
export type Part =
  | {
      readonly role: 'server';
      readonly host: string;
      readonly options: ServerOptions;
      /** Accepts requests and sends back what it receives; otherwise it tells of a request and leaves it unanswered. */
      readonly answers: boolean;
    }
  | {
      readonly role: 'client';
      readonly host: string;
      readonly port: number;
      readonly options: Partial<ConnectOptions>;
      /** Sends a first message; what comes back is sent back in turn. */
      readonly speaks: boolean;
    };

/** What the process tells. */
export type Report =
  | { type: 'listening'; port: number }
  | { type: 'request' }
  | { type: 'failed'; message: string };

/** The side of a connection that is going to die. */
export interface Victim {
  /** Where it listens; 0 for a client. */
  readonly port: number;
  /** It has a request, which it does not answer. */
  readonly asked: Promise<void>;
  /** SIGKILL: resolves when the process is gone, and with it all that it had in the kernel. */
  kill(): Promise<void>;
  /** SIGSTOP: its kernel goes on. */
  freeze(): Promise<void>;
}

const here: PeerHost = { command: (argv) => argv };

/** Starts a victim, which is killed behind the test at the latest. */
export async function startVictim(part: Part, host: PeerHost = here): Promise<Victim> {
  const entry = fileURLToPath(new URL('victim.js', import.meta.url));
  const [file, ...args] = host.command([process.execPath, entry]);
  const child = spawn(file!, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  const kill = () => killed(child);
  onTestFinished(kill);
  const asked = reportOf(child, 'request').then(() => {});
  asked.catch(() => {});
  const listening = reportOf(child, 'listening');
  listening.catch(() => {});
  child.send(part);
  const port = part.role === 'server' ? (await listening).port : 0;
  return { port, asked, kill, freeze: () => frozen(child) };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** A signal is delivered when the process next runs: until then it may still act. */
async function frozen(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  while (!/^State:\tT/m.test(await readFile(`/proc/${child.pid}/status`, 'utf8')));
}

function reportOf<T extends Report['type']>(child: ChildProcess, type: T): Promise<Report & { type: T }> {
  return new Promise((resolve, reject) => {
    child.on('message', (report: Report) => {
      if (report.type === 'failed') reject(new Error(report.message));
      else if (report.type === type) resolve(report as Report & { type: T });
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => reject(new Error(`the victim has ended: ${signal ?? code}`)));
  });
}
