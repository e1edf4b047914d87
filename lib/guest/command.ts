import { statSync } from 'node:fs';
import { type GuestEnd, runGuest } from './boot.js';
import { exitStatus, GuestFailure } from './failure.js';
import { prepareImage } from './image.js';
import { type GuestOptions, parseOptions, usage } from './options.js';
import { Progress } from './progress.js';
import { sessionScript } from './session.js';

const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
/** Node ignores the signal and reports an error of the stream instead. */
const brokenPipe = 13;

async function runGuestOnce(argv: readonly string[], name: string): Promise<number> {
  const options = parseOptions(argv, process.env);
  if (options === 'help') {
    process.stdout.write(usage(name));
    return 0;
  }
  requireFolders(options.shares);
  const stop = new AbortController();
  let signalNumber = brokenPipe;
  for (const [name, number] of Object.entries(signals))
    process.once(name, () => {
      signalNumber = number;
      stop.abort();
    });
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => stop.abort());

  const image = await prepareImage(new Progress((line) => process.stderr.write(line)));
  const end = await runGuest(image, sessionScript(options, process.cwd()), options, {
    output: process.stdout,
    errors: process.stderr,
    stop: stop.signal,
  });
  return report(end, options, signalNumber);
}

function requireFolders(folders: readonly string[]): void {
  for (const folder of folders)
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new GuestFailure(`--share: there is no folder ${folder}`, exitStatus.usage);
}

function report(end: GuestEnd, options: GuestOptions, signalNumber: number): number {
  switch (end.why) {
    case 'status':
      return end.status;
    case 'stopped':
      return 128 + signalNumber;
    case 'time limit':
      throw new GuestFailure(
        `the guest was ended at its time limit of ${options.timeLimit} s (--time-limit)`,
        exitStatus.timeLimit,
      );
    case 'died':
      throw new GuestFailure(
        `the guest died before the command had ended; its kernel's last words:\n${end.console.trimEnd()}`,
        exitStatus.guestDied,
      );
  }
}

/**
 * Runs a command in the guest, as told by the arguments of `vm`; `name` is what the caller is called by.
 *
 * @returns its exit status, or one of lib/guest/failure.ts behind a message on stderr
 */
export async function runGuestCommand(argv: readonly string[], name: string): Promise<number> {
  try {
    return await runGuestOnce(argv, name);
  } catch (error) {
    if (!(error instanceof GuestFailure)) throw error;
    process.stderr.write(`${name}: ${error.message}\n`);
    return error.exitStatus;
  }
}
