import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { exitStatus, GuestFailure } from './failure.js';
import { applets, init } from './init.js';
import { writeManifest } from './manifest.js';
import { installPackages, missingPackages, unpackPackages } from './packages.js';
import { runProgram } from './program.js';
import type { Progress } from './progress.js';

export const imageFiles: readonly string[] = ['vmlinuz', 'initrd'];

/** The modules of the guest, those that they need left out, in the order in which they are loaded. */
const modules = [
  'virtio_pci',
  'virtio_rng',
  'virtio_console',
  '9pnet_virtio',
  '9p',
  'overlay',
  // rxe asks the crypto API for it at run time: no dependency of the module names it.
  'crc32_generic',
  // Before rdma_cm, or DEVICE_REMOVAL never reaches user space.
  'ib_uverbs',
  'rdma_ucm',
  'siw',
  'rdma_rxe',
  'veth',
  'bridge',
  'sch_netem',
];

const siwFolder = 'drivers/infiniband/sw/siw';

/** Builds the image in `work`/image, everything else beside it. @returns the version of the kernel */
export async function buildImage(work: string, progress: Progress): Promise<string> {
  const { kernel, version } = await findKernel();
  const headers = `linux-headers-${kernel}`;
  if ((await missingPackages([headers])).length > 0) await installPackages([headers], progress);
  const series = kernel.split('.').slice(0, 2).join('.');
  const image = `linux-image-${kernel}`;
  const source = `linux-source-${series}`;
  await unpackPackages([image, `${source}=${version}`, 'busybox-static'], work, progress);
  const moduleRoot = await mergeUsr(join(work, image));
  await buildSiw(work, { source, kernel, moduleRoot }, progress);

  progress.step('packing the initial file system');
  await runProgram(['depmod', '-b', join(work, image), kernel]);
  const folder = join(work, 'image');
  await mkdir(folder);
  await cp(join(work, image, 'boot', `vmlinuz-${kernel}`), join(folder, 'vmlinuz'));
  await packInitialFiles(work, { image, kernel, moduleRoot }, join(folder, 'initrd'));
  await writeManifest(folder, kernel, imageFiles);
  return kernel;
}

/** The kernel that Debian would install today, and the version of its package, which is that of its source as well. */
async function findKernel(): Promise<{ kernel: string; version: string }> {
  const depends = await runProgram(['apt-cache', 'depends', 'linux-image-amd64']);
  const kernel = /Depends: linux-image-(\S+)/.exec(depends)?.[1];
  if (kernel === undefined)
    throw new GuestFailure(
      'apt knows no package linux-image-amd64: the guest needs the main section of Debian among its sources',
      exitStatus.setUpImpossible,
    );
  const shown = await runProgram(['apt-cache', 'show', '--no-all-versions', `linux-image-${kernel}`]);
  const version = /^Version: (\S+)$/m.exec(shown)?.[1];
  if (version === undefined) throw new Error(`apt-cache shows no version of linux-image-${kernel}`);
  return { kernel, version };
}

/** Debian 13 unpacks modules to usr/lib, where kmod looks for lib. @returns the folder that holds the modules */
async function mergeUsr(image: string): Promise<string> {
  const lib = join(image, 'lib', 'modules');
  const usr = join(image, 'usr', 'lib', 'modules');
  const merged = await readdir(usr).then(
    () => true,
    () => false,
  );
  if (merged) await cp(usr, lib, { recursive: true });
  return lib;
}

interface Siw {
  readonly source: string;
  readonly kernel: string;
  readonly moduleRoot: string;
}

/** Debian ships siw disabled, in its source only. Built twice: its peer-to-peer mode is a constant in the source. */
async function buildSiw(
  work: string,
  { source, kernel, moduleRoot }: Siw,
  progress: Progress,
): Promise<void> {
  progress.step('unpacking the source of siw');
  const archive = join(work, source, 'usr', 'src', `${source}.tar.xz`);
  await runProgram(['tar', '-C', work, '-xf', archive, `${source}/${siwFolder}`]);
  const folder = join(work, source, siwFolder);
  const target = join(moduleRoot, kernel, 'kernel', siwFolder);
  await mkdir(target, { recursive: true });
  const build = async (name: string) => {
    progress.step(`building ${name}`);
    const headers = `/usr/src/linux-headers-${kernel}`;
    await runProgram(['make', '-s', '-C', headers, `M=${folder}`, 'CONFIG_RDMA_SIW=m', 'modules']);
    await runProgram(['strip', '--strip-debug', '-o', join(target, name), join(folder, 'siw.ko')]);
  };
  await build('siw.ko');
  const main = join(folder, 'siw_main.c');
  const text = await readFile(main, 'utf8');
  const changed = text.replace(/^const bool peer_to_peer;$/m, 'const bool peer_to_peer = true;');
  if (changed === text)
    throw new Error('siw_main.c of this kernel declares its peer_to_peer constant in another way');
  await writeFile(main, changed);
  // Under a name that no dependency knows: the first process loads it in place of siw.ko when it is told to.
  await build('siw-peer-to-peer.ko');
}

interface Unpacked {
  readonly image: string;
  readonly kernel: string;
  readonly moduleRoot: string;
}

async function packInitialFiles(
  work: string,
  { image, kernel, moduleRoot }: Unpacked,
  archive: string,
): Promise<void> {
  const root = join(work, 'initial');
  for (const folder of ['bin', 'cgroup', 'dev', 'mnt', 'modules', 'proc', 'sys'])
    await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, 'init'), init, { mode: 0o755 });
  const busybox = join(work, 'busybox-static');
  const binary = await firstExisting([
    join(busybox, 'bin', 'busybox'),
    join(busybox, 'usr', 'bin', 'busybox'),
  ]);
  await cp(binary, join(root, 'bin', 'busybox'));
  for (const name of applets) await runProgram(['ln', '-s', 'busybox', join(root, 'bin', name)]);

  const order: string[] = [];
  for (const path of await findModules(join(work, image), kernel)) {
    const name = basename(path).replace(/\.xz$/, '');
    order.push(name);
    await cp(path, join(root, 'modules', basename(path)));
    if (path.endsWith('.xz')) await runProgram(['xz', '-d', join(root, 'modules', basename(path))]);
  }
  const variant = 'siw-peer-to-peer.ko';
  await cp(join(moduleRoot, kernel, 'kernel', siwFolder, variant), join(root, 'modules', variant));
  await writeFile(join(root, 'modules', 'order'), order.map((name) => `${name}\n`).join(''));
  // Uncompressed: the emulated processor takes longer to unpack it than QEMU to load it.
  await runProgram(['sh', '-c', 'cd "$1" && find . | cpio -o -H newc --quiet >"$2"', 'sh', root, archive]);
  await rm(root, { recursive: true });
}

/** @returns the files of the modules and of all that they need, each behind those that it needs. */
async function findModules(image: string, kernel: string): Promise<string[]> {
  const files = new Set<string>();
  for (const name of modules) {
    const shown = await runProgram(['modprobe', '-d', image, '-S', kernel, '--show-depends', name]);
    for (const [, file] of shown.matchAll(/^insmod (\S+)/gm)) if (file !== undefined) files.add(file);
  }
  return [...files];
}

async function firstExisting(paths: readonly [string, ...string[]]): Promise<string> {
  for (const path of paths)
    if (
      await readFile(path).then(
        () => true,
        () => false,
      )
    )
      return path;
  throw new Error(`none of these files exists: ${paths.join(', ')}`);
}
