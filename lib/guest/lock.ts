import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Holds a lock on `file` while `work` runs; whoever comes second waits. The kernel keeps the lock, for a child that
 * lives as long as its standard input: a set-up that is killed leaves none behind, whichever way it dies.
 */
export async function withLock<T>(file: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  let release = await acquire(file, ['--nonblock']);
  if (release === undefined) {
    onWait();
    release = await acquire(file, []);
  }
  if (release === undefined) throw new Error(`flock ${file} failed`);
  try {
    return await work();
  } finally {
    await release();
  }
}

/** @returns undefined if somebody else holds the lock and the options say not to wait. */
async function acquire(file: string, options: readonly string[]): Promise<(() => Promise<void>) | undefined> {
  const holder = spawn('flock', [...options, file, 'sh', '-c', 'echo locked; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  const locked = await Promise.race([once(holder.stdout, 'data').then(() => true), ended.then(() => false)]);
  if (!locked) return undefined;
  return async () => {
    holder.stdin.end();
    await ended;
  };
}
