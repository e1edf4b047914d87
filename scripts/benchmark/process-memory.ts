import { readFileSync } from 'node:fs';

/** KiB of this process that are resident: pinned memory is. */
export function residentMemory(): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
}
