import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { quoteCommand } from '#lib/guest/quote.js';

test.each([
  ['nothing', ''],
  ['blanks', ' a  b '],
  ['quotes', `it's "quoted"`],
  ['what a shell expands', '$HOME `id` $(id) * ? ~ {a,b} !x'],
  ['what a shell interprets', '; & | < > ( ) # \\'],
  ['line ends', 'one\ntwo\r\n'],
  ['an option', '--'],
  ['letters of other alphabets', 'größer 雨'],
])('a shell reads an argument with %s exactly as it was', (_, argument) => {
  const line = quoteCommand(['printf', '%s\\0', argument, 'next']);
  expect(execFileSync('sh', ['-c', line]).toString()).toBe(`${argument}\0next\0`);
});

test('plain words stay readable', () => {
  expect(quoteCommand(['ip', '-n', 'h1', 'address', 'add', '10.79.0.1/24'])).toBe(
    'ip -n h1 address add 10.79.0.1/24',
  );
});
