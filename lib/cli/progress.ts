const period = 200;

/** One line on a terminal's stderr that is written over and over; nothing where stderr is no terminal. */
export class LiveLine {
  readonly #active = process.stderr.isTTY === true;
  #next = 0;
  #shown = false;

  /** @param text is called at most five times a second */
  show(text: () => string): void {
    if (!this.#active || performance.now() < this.#next) return;
    this.#next = performance.now() + period;
    this.#shown = true;
    process.stderr.write(`\r\x1b[K${text()}`);
  }

  clear(): void {
    if (this.#shown) process.stderr.write('\r\x1b[K');
  }
}
