import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ProgramCall } from './programs.js';
import type { Sample } from './sample.js';

export interface SideTask {
  readonly call: ProgramCall;
  readonly address: string;
  /** Where the server listens; absent for the server itself. */
  readonly port?: number;
}

export type SideNews =
  | { readonly listening: number }
  | { readonly sample: Sample }
  | { readonly error: string };

const program = fileURLToPath(new URL('./side.js', import.meta.url));

/** A process that runs one side of one program after another. */
export class SideProcess {
  readonly child: ChildProcess;
  readonly #news: AsyncIterator<SideNews[]>;

  /** `wrapper`: a command line that the process is started under. */
  constructor(wrapper: readonly string[], nodeOptions: readonly string[]) {
    const [command, ...args] = [...wrapper, process.execPath, ...nodeOptions, program];
    this.child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#news = on(this.child, 'message', { close: ['close'] });
  }

  start(task: SideTask): void {
    this.child.send(task);
  }

  async listening(): Promise<number> {
    const news = await this.#next();
    if ('listening' in news) return news.listening;
    throw new Error('the server has not listened');
  }

  async sample(): Promise<Sample> {
    const news = await this.#next();
    if ('sample' in news) return news.sample;
    throw new Error('the side has not measured');
  }

  /** Ends the process, by itself or, where it may be in any state, at once. */
  async end(atOnce: boolean): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    if (atOnce) this.child.kill('SIGKILL');
    else this.child.disconnect();
    await exit;
  }

  async #next(): Promise<SideNews> {
    const { value, done } = await this.#news.next();
    if (done === true) throw new Error('a process of the benchmark has ended too early');
    const [news] = value as [SideNews];
    if ('error' in news) throw new Error(news.error);
    return news;
  }
}

/** Command lines that the two sides of whatever is measured are started under. */
export interface Pinning {
  readonly server: readonly string[];
  readonly client: readonly string[];
}

export const anywhere: Pinning = { server: [], client: [] };

/** Each side has a processor to itself: two on one would wait for the scheduler's tick instead of each other. */
export const onOneEach: Pinning = { server: ['taskset', '-c', '0'], client: ['taskset', '-c', '1'] };

/** Both sides, which stay for all programs that are run: what is measured is code that has warmed up. */
export class Sides {
  readonly #server: SideProcess;
  readonly #client: SideProcess;

  constructor({ server, client }: Pinning, nodeOptions: readonly string[] = []) {
    this.#server = new SideProcess(server, nodeOptions);
    this.#client = new SideProcess(client, nodeOptions);
  }

  get clientPid(): number {
    return this.#client.child.pid!;
  }

  async run(call: ProgramCall, address: string): Promise<Sample> {
    this.#server.start({ call, address });
    const port = await this.#server.listening();
    this.#client.start({ call, address, port });
    const [sample, { cpu }] = await Promise.all([this.#client.sample(), this.#server.sample()]);
    // Processor time is that of both.
    return sample.cpu === undefined || cpu === undefined ? sample : { ...sample, cpu: sample.cpu + cpu };
  }

  async end(atOnce = false): Promise<void> {
    await Promise.all([this.#server.end(atOnce), this.#client.end(atOnce)]);
  }
}
