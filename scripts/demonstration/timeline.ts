import type { Step } from '#lib/peer-to-peer/handshake.js';
import type { Timeline } from './news.js';

const names: Record<Step, string> = {
  connecting: 'rdma_connect()',
  accepted: 'rdma_accept() has returned',
  established: 'ESTABLISHED',
  readPosted: '0-byte Read posted',
  writePosted: '0-byte Write posted',
  goPosted: 'GO posted',
  kickPosted: 'kick posted',
  readCompleted: 'Read completed',
  writeCompleted: 'Write completed',
  goCompleted: 'GO has left',
  kickCompleted: 'kick has left',
  goReceived: 'GO received',
  held: 'sends held',
  released: 'sends released',
  failed: 'failed',
};

const column = 28;

/** The steps of both sides in the order of their times, one a line, with the milliseconds since the first. */
export function drawTimeline({ active, passive }: { active: Timeline; passive: Timeline }): string[] {
  const sides = [active, passive].flatMap((timeline, side) =>
    (Object.entries(timeline) as [Step, number][]).map(([step, at]) => ({ step, at, side })),
  );
  sides.sort((a, b) => a.at - b.at);
  const start = sides[0]?.at ?? 0;
  const lines = sides.map(({ step, at, side }) => {
    const indent = ' '.repeat(side * column);
    return `  ${(at - start).toFixed(1).padStart(7)}  ${indent}${names[step]}`;
  });
  return [`  ${'ms'.padStart(7)}  ${'active'.padEnd(column)}passive`, ...lines];
}
