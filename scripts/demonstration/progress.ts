import type { WriteStream } from 'node:tty';

const width = 40;
/** Milliseconds between two lines where there is no terminal. */
const interval = 2000;

/** A bar that fills; where the output is no terminal, a line from time to time. */
export class Progress {
  readonly #output: WriteStream;
  readonly #total: number;
  readonly #unit: string;
  #count = 0;
  #marked = 0;
  #shown = 0;

  /** `unit` names what is marked, for example `lost`. */
  constructor(output: WriteStream, total: number, unit: string) {
    this.#output = output;
    this.#total = total;
    this.#unit = unit;
    this.#show();
  }

  advance(marked: boolean): void {
    this.#count++;
    if (marked) this.#marked++;
    const last = this.#count === this.#total;
    if (!this.#output.isTTY && !last && performance.now() - this.#shown < interval) return;
    this.#show();
    if (last) this.end();
  }

  /** Leaves the line, also before all has been done. */
  end(): void {
    if (this.#output.isTTY) this.#output.write('\n');
  }

  #show(): void {
    this.#shown = performance.now();
    const filled = Math.round((width * this.#count) / this.#total);
    const bar = '#'.repeat(filled).padEnd(width, '.');
    const text = `  [${bar}] ${this.#count} of ${this.#total} connections, ${this.#marked} ${this.#unit}`;
    this.#output.write(this.#output.isTTY ? `\r${text}` : `${text}\n`);
  }
}
