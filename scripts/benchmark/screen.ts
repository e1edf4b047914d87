import type { WriteStream } from 'node:tty';
import { figureOf, isMet, type Result, type Target } from './measurement.js';
import type { RunNews } from './run.js';
import { median } from './sample.js';

const columns = [44, 12, 12, 8, 17, 10] as const;

function row(...cells: readonly string[]): string {
  const [first = '', ...others] = cells;
  return [first.padEnd(columns[0]), ...others.map((cell, i) => cell.padStart(columns[i + 1] ?? 0))].join(' ');
}

/** Three digits that mean something. */
export function figure(value: number): string {
  if (value === 0) return '0';
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

export function describeTarget(target: Target | null): string {
  if (target === null) return '';
  return `${target.kind === 'at most' ? '≤' : '≥'} ${target.limit}`;
}

function verdict(result: Result): string {
  const met = isMet(result);
  return met === null ? '' : met ? 'met' : 'NOT met';
}

/** Shows progress and a row for each result. */
export class Screen {
  readonly #output: WriteStream;
  readonly #pairs: number;
  readonly results: Result[] = [];
  #headed = false;

  constructor(output: WriteStream, pairs: number) {
    this.#output = output;
    this.#pairs = pairs;
  }

  show(news: RunNews): void {
    if ('progress' in news) {
      const { title, pair } = news.progress;
      const text = `${title}: pair ${pair} of ${this.#pairs}`;
      if (this.#output.isTTY) this.#output.write(`\r\x1b[K${text}`);
      // A line, where it can't be overwritten.
      else if (pair === 0) this.#output.write(`${title} …\n`);
    } else if ('failure' in news) {
      this.#line(`${news.failure.title}: failed: ${news.failure.message}`);
    } else {
      this.results.push(news.result);
      this.#showResult(news.result);
    }
  }

  complete(count: number): boolean {
    return this.results.length === count;
  }

  summarize(count: number): void {
    const wanted = this.results.filter(({ target }) => target !== null);
    const met = wanted.filter((result) => isMet(result)).length;
    this.#line(`${this.results.length} of ${count} measured; ${met} of ${wanted.length} targets met.`);
  }

  #showResult(result: Result): void {
    if (!this.#headed) {
      this.#headed = true;
      this.#line(row('', 'ours', 'theirs', 'figure', 'least … most', 'target'));
    }
    const { ours, theirs, figures, title, unit, peer, target, comparison } = result;
    const value = (samples: Result['ours']) =>
      samples.length === 0 ? '' : figure(median(samples.map((sample) => sample.value)));
    const spread = `${figure(Math.min(...figures))} … ${figure(Math.max(...figures))}`;
    const cells = [value(ours), value(theirs), figure(figureOf(result)), spread];
    this.#line(row(title, ...cells, describeTarget(target), verdict(result)));
    this.#line(`  ${unit}${peer === null ? '' : `; ${comparison} to ${peer}`}`);
  }

  #line(text: string): void {
    this.#output.write(`${this.#output.isTTY ? '\r\x1b[K' : ''}${text}\n`);
  }
}
