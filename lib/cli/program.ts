import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { runGuestCommand } from '../guest/command.js';
import { devicesCommand } from './devices/command.js';
import { exitStatus } from './exit-status.js';
import { errorLine, errorRecord, Output } from './output.js';
import { perfCommand } from './perf/command.js';
import { pingCommand } from './ping/command.js';
import { softCommand } from './soft/command.js';

interface PackageDescription {
  readonly version: string;
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as PackageDescription).version;
}

function buildProgram(): Command {
  const program = new Command('node-rdma')
    .description('RDMA on this host: look at it, try it, and test with it.')
    .version(version())
    .addCommand(devicesCommand())
    .addCommand(pingCommand())
    .addCommand(perfCommand())
    .addCommand(softCommand())
    // Here for the help only: see run().
    .addCommand(
      new Command('vm')
        .usage('[options] -- COMMAND [ARGUMENT...]')
        .summary('run a command on a kernel with soft-iWARP and soft-RoCE, on any Debian machine'),
    )
    .addHelpText(
      'after',
      `
Examples:
  node-rdma devices                     what this host has, and what it lacks
  node-rdma ping 10.0.0.1               is there somebody?
  node-rdma perf 10.0.0.1               how fast?
  sudo node-rdma soft add siw0 eth0     RDMA over an ordinary network device
  node-rdma vm -- npm test              tests on a real soft-iWARP kernel

Exit status: 0 success, 1 failure, 2 wrong usage; that of vm is its command's, or as \`node-rdma vm --help\` says.`,
    );
  exitInsteadOf(program);
  return program;
}

/** Lets commander throw where it would end the process, in every command below this one. */
function exitInsteadOf(command: Command): void {
  command.exitOverride();
  command.showHelpAfterError(`(try ${pathOf(command)} --help)`);
  for (const child of command.commands) exitInsteadOf(child as Command);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Runs the command `node-rdma` with these arguments. @returns its exit status */
export async function run(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  // The guest reads its own options: behind its `--` are those of another program.
  if (name === 'vm') return runGuestCommand(rest, 'node-rdma vm');
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Who reads it, `head` for one, has heard enough.
    if (error.code === 'EPIPE') process.exit(exitStatus.success);
    throw error;
  });
  try {
    await buildProgram().parseAsync([...argv], { from: 'user' });
    return Number(process.exitCode ?? exitStatus.success);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitStatus.success : exitStatus.usage;
    if (argv.includes('--json')) new Output(true).machine(errorRecord(error));
    else process.stderr.write(`node-rdma: ${errorLine(error)}\n`);
    return exitStatus.failure;
  }
}
