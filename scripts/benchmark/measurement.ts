import type { ProgramCall } from './programs.js';
import type { Sample } from './sample.js';
import { median } from './sample.js';
import type { Pinning, Sides } from './side-process.js';

/** Where everything runs: one device, that connects to itself. */
export interface Stage {
  readonly device: string;
  readonly address: string;
  readonly sides: Sides;
  readonly pinning: Pinning;
}

export type Contender = (stage: Stage) => Promise<Sample>;

export const atMost = (limit: number): Target => ({ kind: 'at most', limit });
export const atLeast = (limit: number): Target => ({ kind: 'at least', limit });

/** Bytes of a small message. */
export const small = 64;

/** Our two processes as a contender; `factor` makes its unit of the program's. */
export function runSides(call: ProgramCall, factor = 1): Contender {
  return async ({ sides, address }) => {
    const sample = await sides.run(call, address);
    return { ...sample, value: sample.value * factor };
  };
}

export interface Target {
  readonly kind: 'at most' | 'at least';
  readonly limit: number;
}

/** How the figure of a pair comes about: ours divided by theirs, ours less theirs, or ours alone. */
export type Comparison = 'ratio' | 'difference' | 'value';

interface Description {
  /** To choose it by. */
  readonly name: string;
  readonly title: string;
  /** Unit of both values. */
  readonly unit: string;
  readonly comparison: Comparison;
  /** Who the other one is; null if there is none. */
  readonly peer: string | null;
  /** Of the figure; null where it is for information. */
  readonly target: Target | null;
}

/** Something that we do and that another does as well. */
export interface Measurement extends Description {
  /** For our processes. */
  readonly nodeOptions?: readonly string[];
  readonly ours: Contender;
  readonly theirs: Contender | null;
}

export interface Result extends Description {
  readonly ours: readonly Sample[];
  readonly theirs: readonly Sample[];
  /** One for each pair. */
  readonly figures: readonly number[];
}

export function figureOf({ figures }: Result): number {
  return median(figures);
}

export function isMet(result: Result): boolean | null {
  if (result.target === null) return null;
  const { kind, limit } = result.target;
  return kind === 'at most' ? figureOf(result) <= limit : figureOf(result) >= limit;
}

/**
 * Runs both in turn, `pairs` times: what disturbs the machine for a while disturbs both. Ours runs once before that and
 * is not counted: the code of a process that has just started is being compiled, by threads that take the processors.
 */
export async function measure(
  measurement: Measurement,
  stage: Stage,
  pairs: number,
  onPair: (pair: number) => void,
): Promise<Result> {
  const { name, title, unit, comparison, peer, target } = measurement;
  const ours: Sample[] = [];
  const theirs: Sample[] = [];
  await measurement.ours(stage);
  for (let pair = 0; pair < pairs; pair++) {
    if (measurement.theirs !== null) theirs.push(await measurement.theirs(stage));
    ours.push(await measurement.ours(stage));
    onPair(pair + 1);
  }
  const figures = ours.map(({ value }, i) => compare(comparison, value, theirs[i]?.value ?? 0));
  return { name, title, unit, comparison, peer, target, ours, theirs, figures };
}

function compare(comparison: Comparison, ours: number, theirs: number): number {
  if (comparison === 'ratio') return ours / theirs;
  return comparison === 'difference' ? ours - theirs : ours;
}
