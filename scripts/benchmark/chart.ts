// Charts as SVG, of two series: ours and theirs.

const width = 760;
const height = 220;
const left = 60;
const bottom = 30;
const top = 10;
const plotWidth = width - left - 10;
const plotHeight = height - bottom - top;

function svg(content: string, tall = height): string {
  return `<svg viewBox="0 0 ${width} ${tall}" role="img">${content}</svg>`;
}

const text = (x: number, y: number, content: string, anchor = 'middle') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${content}</text>`;

const short = (value: number) => Number(value.toPrecision(3)).toString();

const axes = `<path class="axis" fill="none" d="M${left} ${top}V${top + plotHeight}H${left + plotWidth}"/>`;

function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
}

/** How often each latency was seen, up to what 98 of 100 stay below. */
export function histogram(ours: readonly number[], theirs: readonly number[]): string {
  const all = [...ours, ...theirs];
  const least = Math.min(...all);
  const most = Math.max(quantile(ours, 0.98), quantile(theirs, 0.98), least * 1.01);
  const bins = 60;
  const share = (values: readonly number[]) => {
    const counts = new Array<number>(bins).fill(0);
    for (const value of values) {
      const bin = Math.floor(((value - least) / (most - least)) * bins);
      if (bin < bins) counts[bin]! += 1 / values.length;
    }
    return counts;
  };
  const series = { ours: share(ours), theirs: share(theirs) };
  const highest = Math.max(...series.ours, ...series.theirs);
  const columns = (name: keyof typeof series, shift: number) =>
    series[name]
      .map((part, bin) => {
        const tall = (part / highest) * plotHeight;
        const x = left + ((bin + shift) / bins) * plotWidth;
        return `<rect class="${name}" opacity=".75" x="${x.toFixed(1)}" y="${(top + plotHeight - tall).toFixed(1)}" width="${(plotWidth / bins / 2).toFixed(1)}" height="${tall.toFixed(1)}"/>`;
      })
      .join('');
  const ticks = [0, 0.25, 0.5, 0.75, 1]
    .map((part) => text(left + part * plotWidth, height - 10, short(least + part * (most - least))))
    .join('');
  return svg(axes + columns('ours', 0) + columns('theirs', 0.5) + ticks);
}

/** A line each over sizes that grow by a factor. */
export function lines(points: readonly { size: number; ours: number; theirs: number }[]): string {
  const highest = Math.max(...points.flatMap(({ ours, theirs }) => [ours, theirs]));
  const x = (index: number) => left + (points.length < 2 ? 0.5 : index / (points.length - 1)) * plotWidth;
  const y = (value: number) => top + plotHeight * (1 - value / highest);
  const line = (name: 'ours' | 'theirs') => {
    const path = points.map((point, i) => `${x(i).toFixed(1)},${y(point[name]).toFixed(1)}`);
    const dots = path.map(
      (at) => `<circle class="${name}" cx="${at.split(',')[0]}" cy="${at.split(',')[1]}" r="3"/>`,
    );
    return `<g class="${name}"><polyline class="line" points="${path.join(' ')}"/></g>${dots.join('')}`;
  };
  const ticks = points.map(({ size }, i) => text(x(i), height - 10, String(size))).join('');
  const scale = [0, 0.5, 1]
    .map((part) => text(left - 6, y(part * highest) + 4, short(part * highest), 'end'))
    .join('');
  return svg(axes + line('theirs') + line('ours') + ticks + scale);
}

/** Two bars. */
export function bars(ourName: string, ours: number, theirName: string, theirs: number): string {
  const longest = Math.max(ours, theirs, Number.MIN_VALUE);
  const label = 200;
  const bar = (name: string, title: string, value: number, y: number) => {
    const long = (Math.max(value, 0) / longest) * (width - label - 80);
    return `${text(label - 8, y + 17, title, 'end')}<rect class="${name}" x="${label}" y="${y}" width="${long.toFixed(1)}" height="22"/>${text(label + long + 8, y + 17, short(value), 'start')}`;
  };
  return svg(bar('ours', ourName, ours, 6) + bar('theirs', theirName, theirs, 36), 66);
}
