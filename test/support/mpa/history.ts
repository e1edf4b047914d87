/** Milliseconds since 1970 with a fraction: comparable between processes and with a packet capture. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** What went over a connection, for the message of a failed expectation. */
export class History {
  readonly #lines: { at: number; text: string }[] = [];

  add(text: string, at = now()): void {
    this.#lines.push({ at, text });
  }

  /** One line per event, with milliseconds since the first. */
  toString(): string {
    const start = this.#lines[0]?.at ?? 0;
    return this.#lines
      .map(({ at, text }) => `  ${(at - start).toFixed(1).padStart(9)} ms  ${text}`)
      .join('\n');
  }
}
