import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildImage, imageFiles, recipeModules } from './image-build.js';
import { findKernel } from './kernel.js';
import { withLock } from './lock.js';
import { verifyManifest } from './manifest.js';
import {
  bootPackages,
  imagePackages,
  installPackages,
  missingPackages,
  requireDebian,
  updateLists,
} from './packages.js';
import type { Progress } from './progress.js';

/** What QEMU boots: the folder that holds the files of an image. */
export interface Image {
  readonly folder: string;
  readonly kernel: string;
}

/** An image that other code has built may lack what this code counts on, so its name holds a hash of what made it. */
const recipe = recipeModules
  .reduce((hash, module) => hash.update(readFileSync(module)), createHash('sha256'))
  .digest('hex')
  .slice(0, 12);

function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'node-rdma');
}

/** Finds a whole image, or builds one; installs what a boot needs. Two calls at once build one image. */
export async function prepareImage(progress: Progress): Promise<Image> {
  await requireDebian();
  const cache = cacheFolder();
  await mkdir(cache, { recursive: true });
  const ready = async () =>
    (await missingPackages(bootPackages)).length === 0 ? findImage(cache) : undefined;
  const found = await ready();
  if (found !== undefined) return found;
  const wait = () => progress.step('waiting for another set-up of the guest to end');
  return withLock(join(cache, 'lock'), wait, async () => (await ready()) ?? setUp(cache, progress));
}

async function setUp(cache: string, progress: Progress): Promise<Image> {
  progress.step('setting up the guest, once on this machine: a minute or two');
  await updateLists(progress);
  const kernel = await findKernel();
  const missing = await missingPackages([...imagePackages, kernel.headers]);
  if (missing.length > 0) await installPackages(missing, progress);
  const found = await findImage(cache);
  if (found !== undefined) return found;
  // Whoever was killed in the middle of it has left these.
  for (const name of await readdir(cache))
    if (name.startsWith('unfinished-')) await rm(join(cache, name), { recursive: true, force: true });
  const work = await mkdtemp(join(cache, 'unfinished-'));
  try {
    await buildImage(work, kernel, progress);
    const folder = join(cache, `guest-${kernel.release}-${recipe}`);
    // There is one by this name if its files have come to harm.
    await rm(folder, { recursive: true, force: true });
    await rename(join(work, 'image'), folder);
    progress.step(`the guest is ready: ${folder}`);
    return { folder, kernel: kernel.release };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function findImage(cache: string): Promise<Image | undefined> {
  const names = (await readdir(cache)).filter(
    (name) => name.startsWith('guest-') && name.endsWith(`-${recipe}`),
  );
  // The newest kernel first; the names differ in its version only.
  names.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  for (const name of names) {
    const folder = join(cache, name);
    const manifest = await verifyManifest(folder, imageFiles);
    if (manifest !== undefined) return { folder, kernel: manifest.kernel };
  }
  return undefined;
}
