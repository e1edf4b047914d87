import { table } from './table.js';

const width = 40;
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** The borders between the bars, in the steps 1, 2, 5, 10, … that people read times by. */
function bordersAround(shortest: number, longest: number): number[] {
  const borders: number[] = [];
  for (let power = Math.floor(Math.log10(shortest)); ; power++)
    for (const step of [1, 2, 5]) {
      // By way of the text: 3 * 10 ** -1 is not 0.3.
      const border = Number(`${step}e${power}`);
      if (border * 2.5 <= shortest) continue;
      borders.push(border);
      if (border > longest) return borders;
    }
}

function bar(share: number): string {
  const length = Math.max(share * width, 1 / 8);
  return '█'.repeat(Math.floor(length)) + eighths[Math.floor((length % 1) * 8)];
}

/** Draws how often which time was needed: one line for each span of it that has any. `sorted` in milliseconds. */
export function histogram(sorted: readonly number[]): string {
  const shortest = Math.max(sorted[0] ?? 0, 1e-6);
  const longest = sorted.at(-1);
  if (longest === undefined) return '';
  const borders = bordersAround(shortest, longest);
  const counts = borders.map(() => 0);
  for (const time of sorted) {
    const above = borders.findIndex((border) => border > time);
    counts[Math.max(above, 1)]! += 1;
  }
  const most = Math.max(...counts);
  const first = counts.findIndex((count) => count > 0);
  return table(
    borders.flatMap((border, index) => {
      if (index < first) return [];
      const count = counts[index]!;
      const span = `${borders[index - 1]} to ${border} ms`;
      return [[span.padStart(18), String(count).padStart(8), count === 0 ? '' : bar(count / most)]];
    }),
  );
}
