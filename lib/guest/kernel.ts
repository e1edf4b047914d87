import { exitStatus, GuestFailure } from './failure.js';
import { runProgram } from './program.js';

/** A kernel of Debian's and the packages that it comes in. */
export interface Kernel {
  /** What uname -r tells. */
  readonly release: string;
  /** The version of its packages, which is that of its source as well. */
  readonly version: string;
  readonly image: string;
  readonly headers: string;
  readonly source: string;
}

/** The kernel that Debian would install today. */
export async function findKernel(): Promise<Kernel> {
  const depends = await runProgram(['apt-cache', 'depends', 'linux-image-amd64']).catch(() => '');
  const release = /Depends: linux-image-(\S+)/.exec(depends)?.[1];
  if (release === undefined)
    throw new GuestFailure(
      'apt knows no package linux-image-amd64, which the guest is made of. Run "apt-get update" as root; if that does\n' +
        'not help, the main section of Debian is missing from the sources in /etc/apt',
      exitStatus.setUpImpossible,
    );
  const image = `linux-image-${release}`;
  const shown = await runProgram(['apt-cache', 'show', '--no-all-versions', image]);
  const version = /^Version: (\S+)$/m.exec(shown)?.[1];
  if (version === undefined) throw new Error(`apt-cache shows no version of ${image}`);
  const series = release.split('.').slice(0, 2).join('.');
  return { release, version, image, headers: `linux-headers-${release}`, source: `linux-source-${series}` };
}
