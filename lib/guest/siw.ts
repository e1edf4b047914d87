import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Kernel } from './kernel.js';
import { runProgram } from './program.js';
import type { Progress } from './progress.js';

const sourceFolder = 'drivers/infiniband/sw/siw';

/** siw with its `peer_to_peer` constant true: under a name that no dependency knows, to be loaded in place of siw.ko. */
export const peerToPeerModule = 'siw-peer-to-peer.ko';

/**
 * Builds both kinds of siw from the unpacked source package in `work` into `modules`, where a kernel keeps it. Debian
 * ships siw in its source only, disabled.
 */
export async function buildSiw(
  work: string,
  kernel: Kernel,
  modules: string,
  progress: Progress,
): Promise<void> {
  progress.step('unpacking the source of siw');
  const archive = join(work, kernel.source, 'usr', 'src', `${kernel.source}.tar.xz`);
  await runProgram(['tar', '-C', work, '-xf', archive, `${kernel.source}/${sourceFolder}`]);
  const source = join(work, kernel.source, sourceFolder);
  const target = join(modules, 'kernel', sourceFolder);
  await mkdir(target, { recursive: true });
  const build = async (name: string) => {
    progress.step(`building ${name}`);
    const headers = `/usr/src/${kernel.headers}`;
    await runProgram(['make', '-s', '-C', headers, `M=${source}`, 'CONFIG_RDMA_SIW=m', 'modules']);
    await runProgram(['strip', '--strip-debug', '-o', join(target, name), join(source, 'siw.ko')]);
  };
  await build('siw.ko');
  await setPeerToPeer(join(source, 'siw_main.c'));
  await build(peerToPeerModule);
}

async function setPeerToPeer(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const changed = text.replace(/^const bool peer_to_peer;$/m, 'const bool peer_to_peer = true;');
  if (changed === text) throw new Error(`${file} of this kernel declares its peer_to_peer in another way`);
  await writeFile(file, changed);
}
