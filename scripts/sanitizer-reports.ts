// sanitizer-reports FOLDER PREFIX ADDON: prints what the sanitizers have reported in the files FOLDER/PREFIX.PID and what
// concerns the addon: errors of any kind, and memory that the addon allocated and lost. Fails if there is any.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const [folder, prefix, addon] = process.argv.slice(2);
if (folder === undefined || prefix === undefined || addon === undefined) {
  throw new Error('Usage: sanitizer-reports FOLDER PREFIX ADDON');
}
const module = basename(addon);

/** The parts of a report: an error, or the memory that was lost at one place. */
function partsOf(report: string): string[] {
  return report.split(/\n(?=\n)/).map((part) => part.trim());
}

function concernsAddon(part: string): boolean {
  if (/^(Direct|Indirect) leak/.test(part)) {
    // Node and the tools that the tests start lose memory of their own at their end, also below a call of the addon's.
    const allocator = part.split(/^.*\/node\+0x.*$/m, 1)[0]!;
    return /\/(librdmacm|libibverbs|libsiw|librxe)/.test(allocator) || allocator.includes(module);
  }
  return /ERROR: AddressSanitizer|runtime error/.test(part);
}

/** Names the places in the addon: the sanitizer gives their offsets, since to name all of node's would take minutes. */
function named(part: string): string {
  return part.replaceAll(
    /\(([^()]*)\+(0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?/g,
    (frame, file, offset) => {
      if (basename(file) !== module) return frame;
      const lines = execFileSync('addr2line', ['-Cfpe', addon!, offset], { encoding: 'utf8' });
      return lines.trim();
    },
  );
}

const files = readdirSync(folder).filter((file) => file.startsWith(`${prefix}.`));
// Node always loses something: silence means that the sanitizers were not there.
if (files.length === 0) throw new Error('no process has reported anything: were the sanitizers loaded?');
const found = new Set<string>();
for (const file of files) {
  const parts = partsOf(readFileSync(join(folder, file), 'utf8'));
  parts.forEach((part, i) => {
    // The stack of an error is in the same part, how its memory came and went in the next ones.
    if (concernsAddon(part))
      found.add(named(part.startsWith('=') ? parts.slice(i, i + 3).join('\n\n') : part));
  });
}
for (const part of found) console.log(`${part}\n`);
console.log(`${files.length} processes had something to report, ${found.size} of it of the addon`);
if (found.size > 0) process.exitCode = 1;
