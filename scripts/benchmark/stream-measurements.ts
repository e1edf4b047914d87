import { atLeast, atMost, type Contender, type Measurement, runSides, small } from './measurement.js';
import { runPerftest } from './perftest.js';
import type { ProgramCall } from './programs.js';

const mebibyte = 2 ** 20;
/** Bytes that a bandwidth measurement moves, between a least and a most number of requests. */
const volume = 64 * mebibyte;
const fewest = 200;
const most = 5000;

const operations = ['write', 'read', 'send'] as const;
const sizes = [1, 4, 16, 64, 256, 1024].map((kibibytes) => kibibytes * 1024);

function bandwidth(
  who: 'ring' | 'facade',
  operation: (typeof operations)[number],
  size: number,
  least: number,
): Measurement {
  const iterations = Math.min(most, Math.max(fewest, Math.floor(volume / size)));
  const tool = `ib_${operation}_bw`;
  const kibibytes = size / 1024;
  const facade = who === 'facade';
  return {
    name: `${facade ? 'facade-' : ''}${operation}-bandwidth-${kibibytes}k`,
    title: `${operation} bandwidth, ${kibibytes} KiB${facade ? ', Connection' : ''}`,
    unit: 'MiB/s',
    comparison: 'ratio',
    peer: tool,
    ours: runSides({ program: `${who}-stream`, options: { operation, size, iterations } }, size / mebibyte),
    theirs: (stage) =>
      runPerftest(stage, { tool, args: ['-s', String(size), '-n', String(iterations)], column: 'bandwidth' }),
    target: size >= 65_536 ? atLeast(least) : null,
  };
}

const rateIterations = 10_000;

const sendRate: Measurement = {
  name: 'send-rate',
  title: `rate of ${small} B Sends, many on their way`,
  unit: 'million/s',
  comparison: 'ratio',
  peer: 'ib_send_bw',
  ours: runSides(
    { program: 'ring-stream', options: { operation: 'send', size: small, iterations: rateIterations } },
    1e-6,
  ),
  theirs: (stage) =>
    runPerftest(stage, {
      tool: 'ib_send_bw',
      args: ['-s', String(small), '-n', String(rateIterations)],
      column: 'rate',
    }),
  target: atLeast(0.7),
};

const bulk = { size: mebibyte, iterations: fewest };

const cpuPerByte =
  (call: ProgramCall): Contender =>
  async ({ sides, address }) => {
    const { cpu = Number.NaN } = await sides.run(call, address);
    return { value: (cpu * 1000) / (bulk.size * bulk.iterations) };
  };

const cpuBesideTcp: Measurement = {
  name: 'cpu-per-byte',
  title: 'processor time of 1 MiB Writes',
  unit: 'ns a byte, both sides',
  comparison: 'ratio',
  peer: 'node:net',
  ours: cpuPerByte({ program: 'ring-stream', options: { operation: 'write', ...bulk } }),
  theirs: cpuPerByte({ program: 'tcp-stream', options: bulk }),
  target: atMost(1),
};

export const streamMeasurements: readonly Measurement[] = [
  ...operations.flatMap((operation) => sizes.map((size) => bandwidth('ring', operation, size, 0.97))),
  ...operations.flatMap((operation) =>
    [65_536, mebibyte].map((size) => bandwidth('facade', operation, size, 0.9)),
  ),
  sendRate,
  cpuBesideTcp,
];
