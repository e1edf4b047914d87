import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { siw } from '../support/devices.js';
import { examples } from '../support/documentation.js';

// Below the package, whose own name then leads to it.
const folder = fileURLToPath(new URL('../../examples/', import.meta.url));

type Program = ChildProcessByStdio<null, Readable, Readable>;

function start(name: string, code: string): Program {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}${name}`, code);
  const child = spawn(process.execPath, [`${folder}${name}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  return child;
}

async function listening(server: Program): Promise<void> {
  let heard = '';
  for await (const chunk of server.stdout.iterator({ destroyOnReturn: false })) {
    heard += chunk;
    if (heard.includes('listening')) return;
  }
  throw new Error(`the server has ended: ${heard}${await text(server.stderr)}`);
}

describe('the documentation', () => {
  const all = examples(siw.address);

  test('has examples', () => {
    expect(all.length).toBeGreaterThanOrEqual(8);
  });

  test.each(all)('shows programs that run: $name', async ({ server, program }) => {
    if (server !== undefined) await listening(start('server.mjs', server));
    const child = start('program.mjs', program);
    const [[status], output, errors] = await Promise.all([
      once(child, 'close'),
      text(child.stdout),
      text(child.stderr),
    ]);
    expect(status, output + errors).toBe(0);
    expect(errors).toBe('');
  });
});
