import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Address, Peer } from './peer.js';
import { ProtocolViolation } from './protocol-violation.js';

/** Where a peer's process is started: `command` puts what enters the place in front of a command line. */
export interface PeerHost {
  command(argv: readonly string[]): readonly string[];
}

/** A peer in a child process, with the same face as one in this process. */
export interface RemotePeer extends Peer {
  /** Ends the process without a word, as a crash would: the kernel closes its TCP connection. */
  kill(): Promise<void>;
}

const methods = [
  'sendRequest',
  'receiveReply',
  'receiveRequest',
  'sendReply',
  'nextFpdu',
  'expectReadRequest0',
  'expectReadResponse0',
  'expectWrite0',
  'expectSend',
  'expectTerminate',
  'expectSilence',
  'expectEnd',
  'send',
  'sendReadRequest0',
  'sendReadResponse0',
  'sendWrite0',
  'sendTerminate',
  'history',
  'close',
] as const satisfies readonly (keyof Peer)[];

export type PeerMethod = (typeof methods)[number];

type Request =
  | { method: 'listen'; to: { host: string; port?: number } }
  | { method: 'connect'; to: Address & { localAddress?: string } }
  | { method: PeerMethod; args: unknown[] };

export type Call = Request & { id: number };

export type Outcome =
  | { id: number; value: unknown }
  | { id: number; error: { name: string; message: string } };

/** {@link StrictPeer.listen} in a process on `host`. */
export async function listenOn(host: PeerHost, to: { host: string; port?: number }): Promise<RemotePeer> {
  return await startPeer(host, { method: 'listen', to });
}

/** {@link StrictPeer.connect} in a process on `host`. */
export async function connectFrom(
  host: PeerHost,
  to: Address & { localAddress?: string },
): Promise<RemotePeer> {
  return await startPeer(host, { method: 'connect', to });
}

async function startPeer(host: PeerHost, first: Request): Promise<RemotePeer> {
  const entry = fileURLToPath(new URL('peer-process.js', import.meta.url));
  const [file, ...args] = host.command([process.execPath, entry]);
  if (file === undefined) throw new Error('an empty command line');
  // `ip netns exec` replaces itself by the command and keeps its descriptors: the channel of Node reaches through it.
  const child = spawn(file, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  const calls = new Calls(child);
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  try {
    const localAddress = (await calls.call(first)) as Address;
    const forwarded = Object.fromEntries(
      methods.map((method) => [method, (...args: unknown[]) => calls.call({ method, args })]),
    ) as unknown as Omit<Peer, 'localAddress'>;
    const closeAndStop = async () => {
      try {
        await forwarded.close();
      } finally {
        await stop();
      }
    };
    let closing: Promise<void> | null = null;
    const close = () => {
      closing ??= closeAndStop();
      return closing;
    };
    return { ...forwarded, localAddress, close, kill: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

class Calls {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #ids = 0;
  #gone: Error | null = null;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (outcome: Outcome) => this.#settle(outcome));
    child.on('error', (error) => this.#fail(error));
    child.on('exit', (code, signal) =>
      this.#fail(new Error(`the peer's process has ended: ${signal ?? code}`)),
    );
  }

  async call(request: Request): Promise<unknown> {
    if (this.#gone !== null) throw this.#gone;
    const id = ++this.#ids;
    return await new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#child.send({ ...request, id }, (error) => error && this.#fail(error));
    });
  }

  #settle(outcome: Outcome): void {
    const call = this.#pending.get(outcome.id);
    this.#pending.delete(outcome.id);
    if ('value' in outcome) {
      call?.resolve(outcome.value);
    } else {
      const { name, message } = outcome.error;
      call?.reject(name === 'ProtocolViolation' ? new ProtocolViolation(message) : new Error(message));
    }
  }

  #fail(error: Error): void {
    this.#gone ??= error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
