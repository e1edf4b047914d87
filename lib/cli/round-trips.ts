/** Times of round trips, in milliseconds, and what ping(8) tells of them. */
export class RoundTrips {
  readonly #times: number[] = [];
  #sorted: readonly number[] | undefined;

  add(milliseconds: number): void {
    this.#times.push(milliseconds);
    this.#sorted = undefined;
  }

  get count(): number {
    return this.#times.length;
  }

  /** From the shortest to the longest. */
  get sorted(): readonly number[] {
    this.#sorted ??= this.#times.toSorted((a, b) => a - b);
    return this.#sorted;
  }

  get minimum(): number {
    return this.percentile(0);
  }

  get maximum(): number {
    return this.percentile(100);
  }

  get average(): number {
    return this.#times.reduce((sum, time) => sum + time, 0) / this.count;
  }

  /** The standard deviation, which ping(8) calls mdev. */
  get deviation(): number {
    const { average } = this;
    return Math.sqrt(this.#times.reduce((sum, time) => sum + (time - average) ** 2, 0) / this.count);
  }

  /** The time that `percent` of the round trips did not exceed. */
  percentile(percent: number): number {
    const last = this.sorted.length - 1;
    return this.sorted[Math.max(0, Math.ceil((percent / 100) * (last + 1)) - 1)] ?? Number.NaN;
  }

  /** For a program; times in milliseconds, rounded to a nanosecond. */
  toJSON(): Record<string, number> {
    if (this.count === 0) return { count: 0 };
    const round = (milliseconds: number) => Number(milliseconds.toFixed(6));
    return {
      count: this.count,
      minimum: round(this.minimum),
      average: round(this.average),
      maximum: round(this.maximum),
      deviation: round(this.deviation),
      p50: round(this.percentile(50)),
      p90: round(this.percentile(90)),
      p99: round(this.percentile(99)),
      p999: round(this.percentile(99.9)),
    };
  }
}
