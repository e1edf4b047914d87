import type { HeaderFunction } from './header.js';
import type { CoverageRow } from './table.js';

/** What there is to compare the table with. */
export interface Evidence {
  /** The public functions of each header. */
  headers: ReadonlyMap<string, readonly HeaderFunction[]>;
  /** C functions that the addon imports. */
  imported: ReadonlySet<string>;
  /** A source file of the addon; undefined where there is none. */
  source: (path: string) => string | undefined;
  /** The source of a device test by its name; undefined where there is none. */
  test: (name: string) => string | undefined;
  /** Whether the library has this function, class or member. */
  offers: (api: string) => boolean;
}

function isWord(text: string, word: string): boolean {
  return new RegExp(`\\b${word}\\b`).test(text);
}

/** Whether C++ code has a function: not in a comment, and not as the name in an error. */
function calls(source: string, name: string): boolean {
  return new RegExp(`(?<!")\\b${name}\\b(?!")`).test(source.replace(/\/\/.*/g, ''));
}

function* checkBound(
  row: CoverageRow,
  known: HeaderFunction | undefined,
  evidence: Evidence,
): Generator<string> {
  const { name, where, api, test } = row;
  if (known?.inline !== true && !evidence.imported.has(name)) {
    yield `${name} is said to be bound, but the addon does not import it`;
  }
  const source = evidence.source(where);
  if (source === undefined) yield `${name}: there is no file ${where}`;
  else if (!calls(source, name)) yield `${name}: ${where} does not call it`;
  if (!evidence.offers(api)) yield `${name}: the library has no ${api}`;
  const tested = evidence.test(test);
  const called = api.replace(/^.*[. ]/, '');
  if (tested === undefined) yield `${name}: there is no test ${test}`;
  else if (!isWord(tested, called)) yield `${name}: the test ${test} does not mention ${called}`;
}

/** Everything that is wrong with the table; nothing when it is right. */
export function* checkCoverage(rows: readonly CoverageRow[], evidence: Evidence): Generator<string> {
  const named = new Map<string, CoverageRow>();
  for (const row of rows) {
    if (named.has(row.name)) yield `${row.name} stands in the table twice`;
    named.set(row.name, row);
  }
  for (const [header, functions] of evidence.headers) {
    for (const { name } of functions) {
      const row = named.get(name);
      if (row === undefined) yield `${name} of ${header} is not in the table`;
      else if (row.header !== header) yield `${name} is of ${header}, not of ${row.header}`;
    }
  }
  for (const row of rows) {
    const known = evidence.headers.get(row.header)?.find(({ name }) => name === row.name);
    if (row.where === '') yield `${row.name} is ${row.state}, and nothing says where or why`;
    for (const api of row.replacements) {
      if (!evidence.offers(api)) yield `${row.name}: the library has no ${api}`;
    }
    if (row.state === 'bound') yield* checkBound(row, known, evidence);
    else if (evidence.imported.has(row.name) && known?.called !== true)
      yield `${row.name} is ${row.state}, but the addon imports it`;
  }
  for (const name of evidence.imported) {
    if (!named.has(name)) yield `${name} is imported by the addon, but not in the table`;
  }
}
