import { execFile } from 'node:child_process';

/** A command that could not be done, with what cures it. */
export class ToolError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const environment = {
  ...process.env,
  // Both are in sbin, which an ordinary user's path leaves out.
  PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
  LC_ALL: 'C',
};

/** Runs `rdma(8)`, `ip(8)` or `modprobe(8)`. @returns its stdout */
export function runTool(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { env: environment }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else if (error.code === 'ENOENT')
        reject(
          new ToolError(
            'ENOENT',
            `${program} is missing: apt-get install ${packageOf(program)} (Debian's name)`,
          ),
        );
      else reject(new ToolError('ERR_TOOL_FAILED', `${[program, ...args].join(' ')}: ${stderr.trim()}`));
    });
  });
}

function packageOf(program: string): string {
  return program === 'modprobe' ? 'kmod' : 'iproute2';
}

/** A port of an RDMA device, as `rdma link` shows it. */
export interface RdmaLink {
  readonly ifname: string;
  readonly port: number;
  readonly state: string;
  readonly physical_state: string;
  readonly netdev?: string;
}

/** The RDMA devices of this host: `rdma-link(8)`. */
export async function rdmaLinks(): Promise<RdmaLink[]> {
  return JSON.parse(await runTool('rdma', ['-j', 'link', 'show'])) as RdmaLink[];
}
