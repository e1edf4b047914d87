import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { quoteCommand, quoteWord } from './quote.js';

/** Something to be done to the guest, as data: by this process, or by a shell before a command starts. */
export type Action =
  | { readonly run: readonly [program: string, ...args: string[]] }
  /** Commands of ip, one a line, and the options that they have in common. */
  | { readonly ip: string; readonly options: readonly string[] }
  | { readonly write: string; readonly text: string };

/**
 * Puts those calls of ip together that follow each other with the same options: in an emulated guest, starting a program
 * takes ten times as long as what ip has to do.
 */
export function batchActions(actions: readonly Action[]): Action[] {
  const batched: Action[] = [];
  for (const action of actions) {
    const next = 'run' in action ? asIpCommand(action.run) : action;
    const last = batched.at(-1);
    if (last !== undefined && 'ip' in last && 'ip' in next && sameWords(last.options, next.options))
      batched[batched.length - 1] = { ip: `${last.ip}\n${next.ip}`, options: last.options };
    else batched.push(next);
  }
  return batched;
}

function asIpCommand(argv: readonly [program: string, ...args: string[]]): Action {
  const [program, ...args] = argv;
  if (program !== 'ip' || args.includes('exec')) return { run: argv };
  const count = args[0] === '-n' ? 2 : args[0]?.startsWith('-') ? 1 : 0;
  return { ip: args.slice(count).join(' '), options: args.slice(0, count) };
}

function sameWords(a: readonly string[], b: readonly string[]): boolean {
  return quoteCommand(a) === quoteCommand(b);
}

/** The action as lines of a shell script. */
export function shellLines(action: Action): string[] {
  if ('run' in action) return [quoteCommand(action.run)];
  if ('write' in action) return [`echo ${quoteWord(action.text)} >${quoteWord(action.write)}`];
  return [`${quoteCommand(ipBatch(action.options))} <<'END'`, action.ip, 'END'];
}

/** Throws an error whose message holds what was run, and what it wrote to stderr. */
export async function performAction(action: Action): Promise<void> {
  if ('write' in action) await writeFile(action.write, action.text);
  else if ('run' in action) await run(action.run, '');
  else await run(ipBatch(action.options), action.ip);
}

/** Performs all of them, whatever becomes of each. @returns the errors */
export async function tryActions(actions: readonly Action[]): Promise<unknown[]> {
  const errors: unknown[] = [];
  for (const action of actions) await performAction(action).catch((error: unknown) => errors.push(error));
  return errors;
}

function ipBatch(options: readonly string[]): [string, ...string[]] {
  return ['ip', ...options, '-batch', '-'];
}

async function run([program, ...args]: readonly [string, ...string[]], input: string): Promise<void> {
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'] });
  // A program that ends without reading its input says why with its status.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [[status], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  if (status !== 0)
    throw new Error([quoteCommand([program, ...args]), input, stderr.trim()].filter(Boolean).join('\n'));
}
