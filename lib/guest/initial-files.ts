import { access, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { applets, init } from './init.js';
import { runProgram } from './program.js';
import { peerToPeerModule } from './siw.js';

/** The modules of the guest in the order in which they are loaded, without those that they need. */
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

interface Parts {
  /** A folder that holds lib/modules. */
  readonly moduleRoot: string;
  readonly release: string;
  /** Where busybox-static is unpacked. */
  readonly busybox: string;
}

/** Packs what the kernel starts with, its `root` being an empty folder to work in, into `archive`. */
export async function packInitialFiles(root: string, parts: Parts, archive: string): Promise<void> {
  for (const folder of ['bin', 'cgroup', 'dev', 'mnt', 'modules', 'proc', 'sys'])
    await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, 'init'), init, { mode: 0o755 });
  await copyFile(await findBusybox(parts.busybox), join(root, 'bin', 'busybox'));
  for (const name of applets) await symlink('busybox', join(root, 'bin', name));
  await copyModules(parts, join(root, 'modules'));
  // Not compressed: the emulated processor takes longer to unpack it than QEMU to load it.
  await runProgram(['sh', '-c', 'cd "$1" && find . | cpio -o -H newc --quiet >"$2"', 'sh', root, archive]);
}

async function copyModules({ moduleRoot, release }: Parts, target: string): Promise<void> {
  const files = await findModules(moduleRoot, release);
  const siw = files.find((file) => basename(file) === 'siw.ko');
  if (siw === undefined) throw new Error('modprobe does not know siw, although it was built');
  for (const file of [...files, join(dirname(siw), peerToPeerModule)]) {
    const copy = join(target, basename(file));
    await copyFile(file, copy);
    if (copy.endsWith('.xz')) await runProgram(['xz', '-d', copy]);
  }
  const order = files.map((file) => basename(file, '.xz'));
  await writeFile(join(target, 'order'), `${order.join('\n')}\n`);
}

/** @returns the files of the modules and of all that they need, each behind those that it needs. */
async function findModules(moduleRoot: string, release: string): Promise<string[]> {
  const files = new Set<string>();
  for (const name of modules) {
    const shown = await runProgram(['modprobe', '-d', moduleRoot, '-S', release, '--show-depends', name]);
    for (const [, file] of shown.matchAll(/^insmod (\S+)/gm)) if (file !== undefined) files.add(file);
  }
  return [...files];
}

/** Debian 13 has it in usr/bin, Debian 12 in bin. */
async function findBusybox(folder: string): Promise<string> {
  const merged = join(folder, 'usr', 'bin', 'busybox');
  return access(merged).then(
    () => merged,
    () => join(folder, 'bin', 'busybox'),
  );
}
