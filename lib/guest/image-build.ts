import { mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { packInitialFiles } from './initial-files.js';
import type { Kernel } from './kernel.js';
import { writeManifest } from './manifest.js';
import { unpackPackages } from './packages.js';
import { runProgram } from './program.js';
import type { Progress } from './progress.js';
import { buildSiw } from './siw.js';
import { unpackKernel } from './vmlinux.js';

export const imageFiles: readonly string[] = ['vmlinux', 'initrd'];

/** The modules whose text decides what an image is. */
export const recipeModules = ['image-build', 'init', 'initial-files', 'siw', 'vmlinux'].map(
  (name) => new URL(`./${name}.js`, import.meta.url),
);

/** Builds an image in `work`/image, everything else beside it. */
export async function buildImage(work: string, kernel: Kernel, progress: Progress): Promise<void> {
  const { release } = kernel;
  const busybox = 'busybox-static';
  await unpackPackages([kernel.image, `${kernel.source}=${kernel.version}`, busybox], work, progress);
  const moduleRoot = await makeModuleRoot(work, join(work, kernel.image));
  await buildSiw(work, kernel, join(moduleRoot, 'lib', 'modules', release), progress);
  await runProgram(['depmod', '-b', moduleRoot, release]);

  progress.step('packing the initial file system');
  const image = join(work, 'image');
  await mkdir(image);
  await unpackKernel(join(work, kernel.image, 'boot', `vmlinuz-${release}`), join(image, 'vmlinux'));
  const parts = { moduleRoot, release, busybox: join(work, busybox) };
  await packInitialFiles(join(work, 'initial'), parts, join(image, 'initrd'));
  await writeManifest(image, release, imageFiles);
}

/** Modules are in lib in Debian 12 and in usr/lib in Debian 13, and kmod looks in one of them: here both are the same. */
async function makeModuleRoot(work: string, unpacked: string): Promise<string> {
  const root = join(work, 'modules');
  await mkdir(join(root, 'lib'), { recursive: true });
  await symlink('.', join(root, 'usr'));
  const target = join(root, 'lib', 'modules');
  await rename(join(unpacked, 'usr', 'lib', 'modules'), target).catch(() =>
    rename(join(unpacked, 'lib', 'modules'), target),
  );
  return root;
}
