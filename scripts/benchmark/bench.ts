// Our figures beside those of C: `npm run bench`. See README.md.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { findDevicePlace } from '../demonstration/device-place.js';
import { measurements } from './measurements.js';
import { renderPage } from './page.js';
import { runInGuest, runOnHost } from './place.js';
import { Screen } from './screen.js';

const usage = `Usage: npm run bench [-- OPTION... [NAME...]]

Measures node-rdma beside C programs, in turn, in an emulated guest with soft-iWARP. NAME chooses what to measure: a
name of the list, or the beginning of several. Every figure is the median of the ratios of the pairs.

  --pairs N       how often each is measured (5)
  --device NAME   use this RDMA device of this host instead of the guest
  --json          write the results as JSON
  --html FILE     write a page with charts
  --list          list the names
  --help          show this text
`;

function fail(message: string): never {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(2);
}

const { values, positionals } = parse();

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        pairs: { type: 'string', default: '5' },
        device: { type: 'string' },
        json: { type: 'boolean' },
        html: { type: 'string' },
        list: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${usage}`);
  }
}

function chooseNames(): string[] {
  const all = measurements.map(({ name }) => name);
  for (const wanted of positionals) {
    if (!all.some((name) => name.startsWith(wanted))) fail(`nothing is called ${wanted}: see --list`);
  }
  return all.filter(
    (name) => positionals.length === 0 || positionals.some((wanted) => name.startsWith(wanted)),
  );
}

async function bench(): Promise<boolean> {
  const pairs = Number(values.pairs);
  if (!Number.isInteger(pairs) || pairs < 1) fail(`--pairs takes a number from 1, not ${values.pairs}`);
  const names = chooseNames();
  // With --json stdout is for the machine.
  const screen = new Screen(values.json ? process.stderr : process.stdout, pairs);
  const news =
    values.device === undefined
      ? runInGuest({ names, pairs })
      : runOnHost({
          names,
          pairs,
          device: values.device,
          address: findDevicePlace(values.device).place.address,
        });
  for await (const item of news) screen.show(item);
  screen.summarize(names.length);
  if (values.json) process.stdout.write(`${JSON.stringify(screen.results, null, 2)}\n`);
  if (values.html !== undefined) writeFileSync(values.html, renderPage(screen.results));
  return screen.complete(names.length);
}

if (values.help) {
  process.stdout.write(usage);
} else if (values.list) {
  for (const { name, title, peer } of measurements) {
    process.stdout.write(`${name.padEnd(29)} ${title}${peer === null ? '' : `, beside ${peer}`}\n`);
  }
} else {
  try {
    process.exitCode = (await bench()) ? 0 : 1;
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
