import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Condition } from '../mpa/condition.js';
import { type Conversation, readConversations } from './conversation.js';

/** Where the interface is: `command` puts what enters the place in front of a command line. */
export interface CaptureHost {
  command(argv: readonly string[]): readonly string[];
}

export interface CaptureOptions {
  /** The interface; `lo` for traffic of a host with itself. */
  readonly device: string;
  /** The network namespace's host; the test's own if not given. */
  readonly host?: CaptureHost;
  /** In the language of pcap-filter(7), such as `tcp port 7471`; all TCP if not given. */
  readonly filter?: string;
}

/** A running tcpdump. Its packets come through a pipe: one that has been captured is seen at once. */
export class Capture {
  readonly #tcpdump: ChildProcess;
  readonly #chunks: Buffer[] = [];
  readonly #changed = new Condition();
  readonly #closed: Promise<unknown>;
  #messages = '';
  #isClosed = false;

  /** Resolves when packets are being captured. */
  static async start({ device, host, filter = 'tcp' }: CaptureOptions): Promise<Capture> {
    const argv = ['tcpdump', '-i', device, '-w', '-', '-U', '--immediate-mode', '-n', filter];
    const [file, ...args] = host?.command(argv) ?? argv;
    if (file === undefined) throw new Error('an empty command line');
    const capture = new Capture(spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
    // tcpdump says so when the packet socket is bound and its filter set; from then on the kernel keeps packets.
    await capture.#wait(() => capture.#messages.includes('listening on') || null, 30_000, 'tcpdump to start');
    return capture;
  }

  private constructor(tcpdump: ChildProcess) {
    this.#tcpdump = tcpdump;
    this.#closed = once(tcpdump, 'close').catch((error: Error) => {
      this.#messages += error.message;
    });
    tcpdump.stdout?.on('data', (bytes: Buffer) => {
      this.#chunks.push(bytes);
      this.#changed.announce();
    });
    tcpdump.stderr?.on('data', (bytes: Buffer) => {
      this.#messages += bytes.toString();
      this.#changed.announce();
    });
    this.#closed.then(() => {
      this.#isClosed = true;
      this.#changed.announce();
    });
  }

  /** The MPA connections captured so far. */
  conversations(): Conversation[] {
    return readConversations(Buffer.concat(this.#chunks));
  }

  /** Resolves with the MPA connections as soon as `isEnough` says so of them. */
  async until(
    isEnough: (conversations: Conversation[]) => boolean,
    { within = 30_000 }: { within?: number } = {},
  ): Promise<Conversation[]> {
    return await this.#wait(
      () => {
        const conversations = this.conversations();
        return isEnough(conversations) ? conversations : null;
      },
      within,
      'the conversations that are waited for',
    );
  }

  /** Ends the capture. Rejects if the kernel had to drop packets: then it is no witness. */
  async stop(): Promise<Conversation[]> {
    this.#tcpdump.kill('SIGINT');
    await this.#closed;
    if (!/^0 packets dropped by kernel/m.test(this.#messages)) {
      throw new Error(`the capture is not complete: ${this.#messages}`);
    }
    return this.conversations();
  }

  async #wait<T>(look: () => T | null, within: number, what: string): Promise<T> {
    const failure = (reason: string) => new Error(`${reason} ${what}: ${this.#messages}`);
    return await this.#changed.wait<T>(
      () => {
        const found = look();
        if (found === null && this.#isClosed) throw failure('tcpdump ended before');
        return found;
      },
      within,
      (_, reject) => reject(failure(`${within} ms were not enough for`)),
    );
  }
}
