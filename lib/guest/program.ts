import { type SpawnOptions, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

const environment = {
  ...process.env,
  // modprobe and depmod are in sbin, which an ordinary user's path leaves out.
  PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
  // Some of the output is read, and apt is not to ask anything.
  LC_ALL: 'C',
  DEBIAN_FRONTEND: 'noninteractive',
};

/** Runs a program to its end; what it wrote is shown only when it fails, that is ends with a status that is not
 * one of `success`. @returns its stdout */
export async function runProgram(
  argv: readonly [program: string, ...args: string[]],
  { success = [0], ...options }: Pick<SpawnOptions, 'cwd'> & { success?: readonly number[] } = {},
): Promise<string> {
  const [program, ...args] = argv;
  const child = spawn(program, args, { ...options, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) =>
      resolve(code !== null && success.includes(code) ? null : `status ${signal ?? code}`),
    );
  });
  const [stdout, stderr, failure] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (failure !== null) throw new Error(`${argv.join(' ')}: ${failure}\n${(stderr || stdout).trim()}`);
  return stdout;
}
