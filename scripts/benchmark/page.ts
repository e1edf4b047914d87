import { bars, histogram, lines } from './chart.js';
import { figureOf, isMet, type Result } from './measurement.js';
import { median } from './sample.js';
import { describeTarget, figure } from './screen.js';

const style = `
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222; }
  table { border-collapse: collapse; width: 100%; }
  th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #ddd; }
  th:first-child, td:first-child { text-align: left; }
  .met { color: #15803d; } .missed { color: #b91c1c; }
  .ours { fill: #2563eb; stroke: #2563eb; } .theirs { fill: #d97706; stroke: #d97706; }
  svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: #444; stroke: none; }
  .axis { stroke: #aaa; stroke-width: 1; } .line { fill: none; stroke-width: 2; }
  figure { margin: 1rem 0 2rem; } figcaption { font-weight: 600; }
  .key span { padding: 0 .4rem; color: #fff; border-radius: 3px; margin-right: .5rem; }
  small { color: #666; }
`;

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const medianOf = (samples: Result['ours']) => median(samples.map(({ value }) => value));

function row(result: Result): string {
  const { title, unit, peer, ours, theirs, figures, comparison, target } = result;
  const met = isMet(result);
  const verdict =
    met === null ? '' : met ? '<span class="met">met</span>' : '<span class="missed">not met</span>';
  const beside = peer === null ? '' : `, ${comparison} to ${escapeHtml(peer)}`;
  const cells = [
    `${escapeHtml(title)}<br><small>${escapeHtml(unit)}${beside}</small>`,
    figure(medianOf(ours)),
    theirs.length === 0 ? '' : figure(medianOf(theirs)),
    figure(figureOf(result)),
    `${figure(Math.min(...figures))} … ${figure(Math.max(...figures))}`,
    escapeHtml(describeTarget(target)),
    verdict,
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function figureOfPage(title: string, chart: string): string {
  return `<figure><figcaption>${escapeHtml(title)}</figcaption>${chart}</figure>`;
}

/** All single latencies of all pairs. */
function spread(samples: Result['ours']): number[] {
  return samples.flatMap(({ sorted = [] }) => sorted);
}

function latencies(results: readonly Result[]): string[] {
  return results
    .filter(({ ours }) => spread(ours).length > 0)
    .map(({ title, unit, ours, theirs }) =>
      figureOfPage(`${title}: ${unit}`, histogram(spread(ours), spread(theirs))),
    );
}

const bandwidthName = /^((?:facade-)?(?:write|read|send))-bandwidth-(\d+)k$/;

function bandwidths(results: readonly Result[]): string[] {
  const kinds = new Map<string, { size: number; ours: number; theirs: number }[]>();
  for (const { name, ours, theirs } of results) {
    const [, kind, size] = bandwidthName.exec(name) ?? [];
    if (kind === undefined) continue;
    const points = kinds.get(kind) ?? [];
    points.push({ size: Number(size), ours: medianOf(ours), theirs: medianOf(theirs) });
    kinds.set(kind, points);
  }
  return [...kinds].map(([kind, points]) =>
    figureOfPage(`${kind} bandwidth by message size: MiB/s over KiB`, lines(points)),
  );
}

function others(results: readonly Result[]): string[] {
  return results
    .filter(
      ({ name, ours, theirs }) => !bandwidthName.test(name) && spread(ours).length === 0 && theirs.length > 0,
    )
    .map(({ title, unit, peer, ours, theirs }) =>
      figureOfPage(`${title}: ${unit}`, bars('ours', medianOf(ours), peer ?? '', medianOf(theirs))),
    );
}

/** One page with everything in it. */
export function renderPage(results: readonly Result[]): string {
  const heads = ['', 'ours', 'theirs', 'figure', 'least … most', 'target', ''];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>node-rdma beside C</title>
<style>${style}</style>
<h1>node-rdma beside C</h1>
<p>Both in one run, in turn. A figure is the median over the pairs, beside it the least and the most of them. In an
emulated guest only figures of comparison mean anything.</p>
<table><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>
${results.map(row).join('\n')}
</table>
<p class="key"><span style="background:#2563eb">ours</span><span style="background:#d97706">theirs</span></p>
${[...latencies(results), ...bandwidths(results), ...others(results)].join('\n')}
</html>
`;
}
