import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const tracing = '/sys/kernel/tracing';
const event = `${tracing}/events/raw_syscalls/sys_enter`;
const trigger = 'hist:keys=common_pid';

/**
 * Counts the system calls of every thread, in the kernel: strace would stop the thread at each, and who waits longer
 * waits in another way. Wants root.
 */
export class SystemCallCounter {
  constructor() {
    if (!existsSync(event)) execFileSync('mount', ['-t', 'tracefs', 'tracefs', tracing]);
    writeFileSync(`${event}/trigger`, trigger);
  }

  /** The calls of a thread so far, or of a process's first thread. */
  of(pid: number): number {
    const histogram = readFileSync(`${event}/hist`, 'utf8');
    const entry = new RegExp(`common_pid:\\s+${pid} \\} hitcount:\\s+(\\d+)`).exec(histogram);
    return Number(entry?.[1] ?? 0);
  }

  end(): void {
    writeFileSync(`${event}/trigger`, `!${trigger}`);
  }
}

/** System calls of one more message: of a run with many, less those of a run with few. */
export async function callsPerMessage(
  run: (messages: number, counter: SystemCallCounter) => Promise<number>,
  few: number,
  many: number,
): Promise<number> {
  const counter = new SystemCallCounter();
  try {
    const base = await run(few, counter);
    return ((await run(many, counter)) - base) / (many - few);
  } finally {
    counter.end();
  }
}
