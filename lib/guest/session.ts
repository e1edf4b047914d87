import { type Action, batchActions, shellLines } from './action.js';
import {
  createHostActions,
  createRxePairActions,
  localRulesLast,
  planHosts,
  planRxePair,
  shapeWire,
  singleDevice,
} from './network-plan.js';
import type { GuestOptions } from './options.js';
import { quoteCommand, quoteWord } from './quote.js';

/** The script that bash runs in the guest: environment, shared folders, network, and then the command in its place. */
export function sessionScript(
  options: Pick<GuestOptions, 'command' | 'environment' | 'shares' | 'hosts' | 'shape'>,
  folder: string,
): string {
  const { command, environment, shares, hosts, shape } = options;
  return [
    'set -e',
    `trap 'echo "The guest could not be set up: $BASH_COMMAND" >&2; exit 125' ERR`,
    // Debian's own path: ip and rdma are in sbin, which an ordinary user's path leaves out.
    'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'echo guest >/proc/sys/kernel/hostname',
    ...shares.map((share, index) => {
      const options = 'trans=virtio,version=9p2000.L,msize=1048576,cache=mmap';
      return quoteCommand(['mount', '-t', '9p', '-o', options, shareTag(index), share]);
    }),
    ...batchActions(networkActions(hosts, shape)).flatMap(shellLines),
    'trap - ERR',
    'set +e',
    `cd -- ${quoteWord(folder)} || exit 125`,
    // In the initial environment, bash has marked PATH and friends for export; others come from the caller only.
    ...Object.entries(environment)
      .filter(([name]) => name !== 'PATH')
      .map(([name, value]) => `export ${name}=${quoteWord(value)}`),
    ...(environment.PATH === undefined ? [] : [`PATH=${quoteWord(environment.PATH)}:$PATH`]),
    `exec ${quoteCommand(command)}`,
    '',
  ].join('\n');
}

/** What QEMU and the guest call the share of this number. */
export function shareTag(index: number): string {
  return `share${index}`;
}

function networkActions(hosts: number, shape: GuestOptions['shape']): Action[] {
  const plans = planHosts(hosts);
  return [
    { run: ['ip', 'link', 'set', 'lo', 'up'] },
    ...(hosts === 0 ? singleDevice : createHostActions(plans)),
    ...(Object.keys(shape).length === 0 ? [] : plans.map((plan) => shapeWire(plan, shape, 1))),
    ...localRulesLast,
    ...createRxePairActions(planRxePair(0)),
  ];
}
