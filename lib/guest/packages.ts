import { access, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { exitStatus, GuestFailure } from './failure.js';
import { runProgram } from './program.js';
import type { Progress } from './progress.js';

/** Debian packages that have to be on this machine, by what they are for. */
const packages = {
  boot: {
    'qemu-system-x86': 'runs the guest',
    // The guest uses this machine's files: what its commands call has to be here.
    iproute2: 'ip, tc and rdma: the wires, and the devices on them',
    'ibverbs-providers': 'the user-space drivers of siw and rxe',
    'ibverbs-utils': 'ibv_devinfo, to look at a device',
    'rdmacm-utils': 'rping, the C peer of the interoperability tests',
    perftest: 'the C programs that benchmarks are measured against',
    tcpdump: 'packet captures',
  },
  image: {
    // The headers of the kernel come with these; their name holds its version.
    cpio: 'packs the initial file system',
    kmod: 'finds out which modules a module needs',
    make: 'builds siw, which Debian ships disabled',
    gcc: 'builds siw',
    'librdmacm-dev': 'C programs that run in the guest',
    'libibverbs-dev': 'C programs that run in the guest',
    'xz-utils': 'unpacks the kernel source',
    'ca-certificates': 'package mirrors on https',
  },
} as const;

export const bootPackages: readonly string[] = Object.keys(packages.boot);
export const imagePackages: readonly string[] = [...bootPackages, ...Object.keys(packages.image)];

const lockPatience = 600;

/** Runs apt-get. Somebody else's apt, an unattended upgrade for one, is waited for. */
async function runApt(args: readonly string[], cwd = '/'): Promise<void> {
  const command = ['apt-get', '-y', '-q', '-o', `DPkg::Lock::Timeout=${lockPatience}`, ...args] as const;
  for (const deadline = performance.now() + lockPatience * 1000; ; await delay(1000)) {
    try {
      await runProgram([...command], { cwd });
      return;
    } catch (error) {
      // apt waits for dpkg's lock, but gives up at once on those of its lists and its downloads.
      const locked = error instanceof Error && error.message.includes('Could not get lock');
      if (!locked || performance.now() > deadline) throw error;
    }
  }
}

/** Throws what to do instead if this machine has no Debian packages, or not those for this processor. */
export async function requireDebian(): Promise<void> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const debian =
    /^ID="?debian"?$/m.test(release) &&
    (await access('/usr/bin/apt-get').then(
      () => true,
      () => false,
    ));
  if (debian && process.arch === 'x64') return;
  throw new GuestFailure(
    `the guest is made of Debian's packages for amd64, and this is ${process.arch === 'x64' ? 'no Debian' : process.arch}. ` +
      'In a container of Debian it runs anywhere that runs amd64 containers:\n' +
      '  docker run --rm -it -v "$PWD:$PWD" -w "$PWD" node:20-bookworm npx node-rdma vm -- COMMAND',
    exitStatus.setUpImpossible,
  );
}

/** @returns those of `names` that are not installed. */
export async function missingPackages(names: readonly string[]): Promise<string[]> {
  // It exits with 1 when it does not know one of the names, and lists the others all the same.
  const list = await runProgram(['dpkg-query', '--list', ...names], { success: [0, 1] });
  const installed = new Set([...list.matchAll(/^ii +([^\s:]+)/gm)].map(([, name]) => name));
  return names.filter((name) => !installed.has(name));
}

/** Brings apt's lists up to date, on which depends what can be found and downloaded; only root can. */
export async function updateLists(progress: Progress): Promise<void> {
  if (!isRoot()) return;
  progress.step('updating the package lists');
  await runApt(['update']);
}

export async function installPackages(names: readonly string[], progress: Progress): Promise<void> {
  const install = ['install', '--no-install-recommends', ...names];
  if (!isRoot())
    throw new GuestFailure(
      'the guest needs packages that only root can install. Run this once, then try again:\n' +
        `  sudo sh -c 'apt-get update && apt-get ${install.join(' ')}'`,
      exitStatus.setUpImpossible,
    );
  progress.step(`installing ${names.join(' ')}`);
  await runApt(install);
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Downloads packages into `folder` without installing them, and unpacks each into a folder of its own name. */
export async function unpackPackages(
  names: readonly string[],
  folder: string,
  progress: Progress,
): Promise<void> {
  progress.step(`downloading ${names.join(' ')}`);
  // As root apt would drop its privileges for the download, and then complain that it cannot write here.
  await runApt(['-o', 'APT::Sandbox::User=root', 'download', ...names], folder);
  for (const name of names) {
    const [plainName = name] = name.split('=');
    await runProgram(['sh', '-c', 'dpkg-deb -x "$1"_*.deb "$1"', 'sh', plainName], { cwd: folder });
  }
}
