import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Network } from '#lib/guest/network.js';

/** What a launcher and its ranks have said, and how it ended. */
export interface Launch {
  status: number | null;
  output: string;
  errors: string;
}

const agent = '/usr/local/bin/netns-agent';

/** Open MPI's remote agent for hosts that are network namespaces; each gets a host name of its own. */
const agentScript = `#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
`;

/** Makes the names of the hosts known; in the guest alone, whose files are its own. */
export async function nameHosts({ hosts }: Network): Promise<void> {
  await appendFile('/etc/hosts', hosts.map(({ address, name }) => `${address} ${name}\n`).join(''));
  await writeFile(agent, agentScript, { mode: 0o755 });
}

/** Starts `command` as so many ranks on each of the hosts: `mpirun(1)`. */
export async function mpirun(
  network: Network,
  ranksPerHost: number,
  command: readonly string[],
  options: readonly string[] = [],
): Promise<Launch> {
  const names = network.hosts.map(({ name }) => name);
  const argv = [
    ...['unshare', '--uts', 'sh', '-c', 'hostname "$0"; exec "$@"', names[0]!],
    ...['mpirun', '--allow-run-as-root', '--bind-to', 'none'],
    ...['--mca', 'plm_rsh_agent', agent, '--mca', 'oob_tcp_if_include', '10.79.0.0/24'],
    ...['--host', names.map((name) => `${name}:${ranksPerHost}`).join(',')],
    ...['-np', String(ranksPerHost * names.length)],
    ...options,
    ...command,
  ];
  const [file, ...args] = network.host(1).command(argv);
  const child = spawn(file!, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = [text(child.stdout), text(child.stderr)];
  const [status] = await once(child, 'close');
  return { status, output: await output, errors: await errors };
}
