import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Order, Told } from './messages.js';

/** Longer than all that is waited for in a cell takes, by far: a process that says nothing for so long is hung. */
const patience = 200_000;

/** A process with one side of a connection, on a host of its own. */
export class Player {
  readonly #child: ChildProcess;
  readonly #told: Told[] = [];
  #wake = () => {};
  /** It has loaded all that it needs. */
  readonly loaded: Promise<unknown>;

  /** @param command as it has to be started for its host */
  constructor(program: 'subject' | 'peer', command: (argv: readonly string[]) => string[]) {
    const entry = fileURLToPath(new URL(`${program}.js`, import.meta.url));
    const [file, ...args] = command([process.execPath, entry]);
    this.#child = spawn(file!, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    this.#child.on('message', (told: Told) => {
      this.#told.push(told);
      this.#wake();
    });
    this.#child.on('exit', () => this.#wake());
    this.loaded = this.hear('loaded');
    this.loaded.catch(() => {});
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get #gone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  tell(order: Order): void {
    this.#child.send(order, () => {});
  }

  /** The next report of this type; what it told before and nobody asked for is dropped. */
  async hear<T extends Told['type']>(type: T): Promise<Told & { type: T }> {
    const timer = setTimeout(() => this.#wake(), patience).unref();
    const until = performance.now() + patience;
    try {
      for (;;) {
        for (let told = this.#told.shift(); told !== undefined; told = this.#told.shift()) {
          if (told.type === 'failed') throw new Error(told.message);
          if (told.type === type) return told as Told & { type: T };
        }
        if (this.#gone) {
          throw new Error(`the process has ended: ${this.#child.signalCode ?? this.#child.exitCode}`);
        }
        if (performance.now() >= until) throw new Error(`the process hangs: no word of '${type}'`);
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** SIGKILL: resolves when it is gone, and with it all that it had in the kernel. */
  async kill(): Promise<void> {
    if (this.#gone) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  /** SIGSTOP: its kernel goes on. A signal is delivered when the process next runs: until then it may still act. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP');
    while (!/^State:\tT/m.test(await readFile(`/proc/${this.#child.pid}/status`, 'utf8')));
  }
}
