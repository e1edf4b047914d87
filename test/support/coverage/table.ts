/** What becomes of a function of the C libraries. */
export interface CoverageRow {
  header: string;
  name: string;
  state: 'bound' | 'replaced' | 'left out';
  /** Bound: the file of the call. Replaced: by what, and why. Left out: why. */
  where: string;
  /** Bound: what calls it, `CmId.accept`, `new CmId` or `getAddressInfo`. */
  api: string;
  /** Bound: the name of the test that shows it. */
  test: string;
  /** Replaced: the calls that it names, `CmId.close` for `CmId.close()`. */
  replacements: string[];
}

const states = ['bound', 'replaced', 'left out'] as const;

function plain(cell: string): string {
  return cell.trim().replaceAll('`', '');
}

/** Reads the tables of native/COVERAGE.md: each stands under the name of its header. */
export function parseTable(markdown: string): CoverageRow[] {
  const rows: CoverageRow[] = [];
  let header = '';
  for (const line of markdown.split('\n')) {
    const heading = /^## `(.+\.h)`/.exec(line);
    if (heading !== null) header = heading[1]!;
    if (!line.startsWith('| `')) continue;
    const [name = '', stateText = '', where = '', api = '', test = ''] = line
      .split('|')
      .slice(1, -1)
      .map(plain);
    const state = states.find((known) => known === stateText);
    if (state === undefined) throw new Error(`${name}: "${stateText}" is not one of ${states.join(', ')}`);
    const replacements =
      state === 'replaced' ? [...line.matchAll(/`([\w. ]+)\(\)`/g)].map(([, call]) => call!) : [];
    rows.push({ header, name, state, where, api, test, replacements });
  }
  return rows;
}
