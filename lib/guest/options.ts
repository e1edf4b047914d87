import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exitStatus, GuestFailure } from './failure.js';
import type { WireShape } from './network-plan.js';

export interface GuestOptions {
  readonly command: readonly string[];
  /** MiB */
  readonly memory: number;
  readonly cpus: number;
  /** Seconds from the start of the boot. */
  readonly timeLimit: number;
  /** Folders that the guest may write to, at the same path. */
  readonly shares: readonly string[];
  readonly kernelPeerToPeer: boolean;
  readonly environment: Readonly<Record<string, string>>;
  /** Network namespaces to make before the command runs; 0 leaves one siw device in the initial namespace. */
  readonly hosts: number;
  readonly shape: WireShape;
}

/** @param name of the command */
export const usage = (name: string): string => `Usage: ${name} [options] -- COMMAND [ARGUMENT...]

Runs COMMAND as root on a real Linux kernel with soft-iWARP (siw) and soft-RoCE (rxe), in an emulated guest that
sees the files of this machine. It starts in the current folder and ends with COMMAND's exit status. What it writes
stays in the guest, and it has no network but its own.

Options:
  --memory MiB             memory of the guest (4096)
  --cpus N                 processors of the guest (2)
  --time-limit SECONDS     end the guest after this time (600)
  --share FOLDER           let the guest write to FOLDER; may be repeated
  --env NAME[=VALUE]       pass a variable on, or set one; may be repeated
                           (PATH HOME TERM LANG CI NODE_EXTRA_CA_CERTS are passed on by themselves)
  --kernel-peer-to-peer    use an siw that sends its own RTR frames
  --hosts N                make network namespaces h1 to hN, addresses 10.79.0.1 to 10.79.0.N, each with an siw device
  --delay MS               with --hosts: delay of each host's egress, in milliseconds
  --loss PERCENT           with --hosts: packets lost on each host's egress
  --slot 'MIN MAX'         with --hosts: each host's egress sends in bursts, MIN to MAX milliseconds apart
  --help                   show this text

Exit status: COMMAND's own, or 2 wrong usage, 123 set-up impossible, 124 time limit, 125 the guest died.
`;

const passedOn = ['PATH', 'HOME', 'TERM', 'LANG', 'CI', 'NODE_EXTRA_CA_CERTS'];

/** @returns 'help' when that is what was asked for. */
export function parseOptions(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): GuestOptions | 'help' {
  const separator = argv.indexOf('--');
  const values = parseValues(separator < 0 ? argv : argv.slice(0, separator));
  if (values.help) return 'help';
  const command = separator < 0 ? [] : argv.slice(separator + 1);
  if (command.length === 0) throw wrongUsage('no command: put it behind "--", as in -- rdma link');
  const hosts = numberIn('--hosts', values.hosts, { minimum: 2, maximum: 64 }) ?? 0;
  const delay = numberIn('--delay', values.delay, { minimum: 0, maximum: 60_000, fraction: true });
  const loss = numberIn('--loss', values.loss, { minimum: 0, maximum: 100, fraction: true });
  const slot = values.slot === undefined ? undefined : parseSlot(values.slot);
  const shape: WireShape = {
    ...(delay !== undefined && { delay }),
    ...(loss !== undefined && { loss }),
    ...(slot !== undefined && { slot }),
  };
  if (hosts === 0 && Object.keys(shape).length > 0)
    throw wrongUsage('--delay, --loss and --slot need --hosts: they shape the wire between hosts');
  return {
    command,
    memory: numberIn('--memory', values.memory, { minimum: 512, maximum: 1_048_576 }) ?? 4096,
    cpus: numberIn('--cpus', values.cpus, { minimum: 1, maximum: 64 }) ?? 2,
    timeLimit: numberIn('--time-limit', values['time-limit'], { minimum: 1, maximum: 604_800 }) ?? 600,
    shares: (values.share ?? []).map((folder) => resolve(folder)),
    kernelPeerToPeer: values['kernel-peer-to-peer'] ?? false,
    environment: chooseEnvironment(values.env ?? [], environment),
    hosts,
    shape,
  };
}

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        memory: { type: 'string' },
        cpus: { type: 'string' },
        'time-limit': { type: 'string' },
        share: { type: 'string', multiple: true },
        env: { type: 'string', multiple: true },
        'kernel-peer-to-peer': { type: 'boolean' },
        hosts: { type: 'string' },
        delay: { type: 'string' },
        loss: { type: 'string' },
        slot: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw wrongUsage(error instanceof Error ? error.message : String(error));
  }
}

function numberIn(
  option: string,
  text: string | undefined,
  { minimum, maximum, fraction = false }: { minimum: number; maximum: number; fraction?: boolean },
): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= minimum && value <= maximum) || (!fraction && !Number.isInteger(value)))
    throw wrongUsage(
      `${option} takes ${fraction ? 'a number' : 'a whole number'} from ${minimum} to ${maximum}, not "${text}"`,
    );
  return value;
}

function parseSlot(text: string): readonly [number, number] {
  const match = /^(\d+(?:\.\d+)?)(?:ms)? (\d+(?:\.\d+)?)(?:ms)?$/.exec(text);
  const slot = [Number(match?.[1]), Number(match?.[2])] as const;
  if (!(slot[0] <= slot[1]))
    throw wrongUsage(`--slot takes two milliseconds, the smaller one first, as in '4 6', not "${text}"`);
  return slot;
}

function chooseEnvironment(
  requested: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const chosen: Record<string, string> = {};
  for (const item of [...passedOn, ...requested]) {
    const equals = item.indexOf('=');
    const name = equals < 0 ? item : item.slice(0, equals);
    if (!/^[A-Za-z_]\w*$/.test(name)) throw wrongUsage(`--env takes NAME or NAME=VALUE, not "${item}"`);
    const value = equals < 0 ? environment[name] : item.slice(equals + 1);
    if (value !== undefined) chosen[name] = value;
  }
  return chosen;
}

function wrongUsage(message: string): GuestFailure {
  return new GuestFailure(`${message}\n(try --help)`, exitStatus.usage);
}
