import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkCoverage, type Evidence } from '../support/coverage/check.js';
import { gatherEvidence, root } from '../support/coverage/evidence.js';
import { publicFunctions } from '../support/coverage/header.js';
import { type CoverageRow, parseTable } from '../support/coverage/table.js';

const table = parseTable(readFileSync(`${root}/native/COVERAGE.md`, 'utf8'));
const evidence = gatherEvidence();

const complaints = (rows: readonly CoverageRow[], changes: Partial<Evidence> = {}) => [
  ...checkCoverage(rows, { ...evidence, ...changes }),
];
const now = new Set(complaints(table));

test('every public function of librdmacm and libibverbs is bound, replaced, or left out with a reason', () => {
  expect([...now]).toEqual([]);
});

test('the headers were read', () => {
  const functions = [...evidence.headers.values()].flat().map(({ name }) => name);
  expect(functions).toEqual(
    expect.arrayContaining([
      'ibv_reg_mr',
      'ibv_post_send',
      'rdma_accept',
      'rdma_get_peer_addr',
      'rdma_post_ud_send',
    ]),
  );
  expect(functions.length).toBeGreaterThan(200);
});

describe('the check finds', () => {
  const change = (name: string, changes: Partial<CoverageRow>) =>
    table.map((row) => (row.name === name ? { ...row, ...changes } : row));
  /** What is wrong with other rows, or other evidence, and was not wrong before. */
  const added = (...changed: Parameters<typeof complaints>) =>
    complaints(...changed).filter((complaint) => !now.has(complaint));
  const without = (name: string) => table.filter((row) => row.name !== name);

  test('a function that is missing', () => {
    expect(added(without('rdma_notify'))).toEqual([
      'rdma_notify of rdma/rdma_cma.h is not in the table',
      'rdma_notify is imported by the addon, but not in the table',
    ]);
  });

  test('a function that a newer header adds', () => {
    const headers = new Map(evidence.headers).set('rdma/rdma_verbs.h', [
      ...evidence.headers.get('rdma/rdma_verbs.h')!,
      ...publicFunctions('int rdma_invent(struct rdma_cm_id *id, int (*callback)(void));'),
    ]);
    expect(added(table, { headers })).toEqual(['rdma_invent of rdma/rdma_verbs.h is not in the table']);
  });

  test('a claim that the addon belies', () => {
    expect(added(change('rdma_notify', { state: 'left out' }))).toEqual([
      'rdma_notify is left out, but the addon imports it',
    ]);
    const imported = new Set([...evidence.imported].filter((name) => name !== 'rdma_notify'));
    expect(added(table, { imported })).toContain(
      'rdma_notify is said to be bound, but the addon does not import it',
    );
  });

  test('a call site that is none', () => {
    expect(added(change('rdma_get_peer_addr', { where: 'native/addon.cc' }))).toEqual([
      'rdma_get_peer_addr: native/addon.cc does not call it',
    ]);
    expect(added(change('rdma_get_peer_addr', { where: 'native/none.cc' }))).toEqual([
      'rdma_get_peer_addr: there is no file native/none.cc',
    ]);
  });

  test('a test that is not there, or does not call it', () => {
    expect(added(change('rdma_notify', { test: 'no-such' }))).toEqual([
      'rdma_notify: there is no test no-such',
    ]);
    expect(added(change('rdma_notify', { test: 'cm-migrate' }))).toEqual([
      'rdma_notify: the test cm-migrate does not mention notify',
    ]);
  });

  test('an API that the library does not have', () => {
    expect(added(change('rdma_notify', { api: 'CmId.notifyAll' }))).toContain(
      'rdma_notify: the library has no CmId.notifyAll',
    );
    expect(added(change('rdma_create_ep', { replacements: ['CmId.close', 'createEndpoint'] }))).toEqual([
      'rdma_create_ep: the library has no createEndpoint',
    ]);
  });

  test('a row without a reason, or twice, or under another header', () => {
    expect(added(change('rdma_create_ep', { where: '' }))).toEqual([
      'rdma_create_ep is replaced, and nothing says where or why',
    ]);
    const again = table.find(({ name }) => name === 'rdma_notify')!;
    expect(added([...table, again])).toEqual(['rdma_notify stands in the table twice']);
    expect(added(change('rdma_create_ep', { header: 'rdma/rdma_verbs.h' }))).toEqual([
      'rdma_create_ep is of rdma/rdma_cma.h, not of rdma/rdma_verbs.h',
    ]);
  });
});

test('functions are told from the rest of a header', () => {
  const header = `
    /* int in_a_comment(void); */
    #define guarded(a) \\
      some_call(a)
    extern "C" {
    struct object { int (*member)(int argument); } __attribute__((packed));
    typedef int (*callback)(int);
    enum kind { FIRST = (1 << 0) };
    int plain(struct object *object);
    const char *with_attribute(int value) __attribute__((const));
    static inline int inlined(int a) { if (a) { return plain(0); } return 0; }
    int guarded(int a);
    int _hidden(int a);
    }
  `;
  expect(publicFunctions(header)).toEqual([
    { name: 'plain', inline: false, called: true },
    { name: 'with_attribute', inline: false, called: false },
    { name: 'inlined', inline: true, called: false },
    { name: 'guarded', inline: true, called: true },
  ]);
});
