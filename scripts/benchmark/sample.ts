/** What one run of a contender has measured. */
export interface Sample {
  /** In the unit of the measurement. */
  readonly value: number;
  /** Processor time that the program took, in microseconds, user and system. */
  readonly cpu?: number;
  /** Single values in ascending order, for latencies: what a histogram is drawn of. */
  readonly sorted?: readonly number[];
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** `fraction` from 0 to 1, of values in ascending order. */
export function quantile(sorted: ArrayLike<number>, fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))]!;
}

/** Most of the values that are kept for a histogram. */
const kept = 500;

/** The median of latencies, and enough of them to draw how they spread. */
export function latencySample(values: Float64Array): Sample {
  const sorted = values.toSorted();
  const step = sorted.length / Math.min(kept, sorted.length);
  const some = Array.from({ length: Math.min(kept, sorted.length) }, (_, i) => sorted[Math.floor(i * step)]!);
  return { value: quantile(sorted, 0.5), sorted: some.map((value) => Math.round(value * 100) / 100) };
}
