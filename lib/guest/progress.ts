/** Tells a person on stderr what is being done, with the seconds since the start. */
export class Progress {
  readonly #write: (line: string) => void;
  readonly #start = performance.now();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  step(what: string): void {
    const seconds = ((performance.now() - this.#start) / 1000).toFixed(1);
    this.#write(`[guest ${seconds.padStart(5)} s] ${what}\n`);
  }
}
