import type { Action } from './action.js';

/** What a wire does to the packets that leave through it; without a property the wire does nothing of that kind. */
export interface WireShape {
  /** Milliseconds that each packet is held back. */
  readonly delay?: number;
  /** Milliseconds around `delay` that differ from packet to packet, which reorders them. */
  readonly jitter?: number;
  /** Percent of the packets that vanish. */
  readonly loss?: number;
  /** Packets wait and leave together, this many milliseconds apart: at least, at most. */
  readonly slot?: readonly [minimum: number, maximum: number];
  /** Packets that can wait at once; netem's own default of 1000 drops the rest. */
  readonly limit?: number;
}

/** Where a wire begins: a network device and the namespace that it is in, if that is not the initial one. */
export interface WireEnd {
  readonly netdev: string;
  readonly namespace?: string;
}

export interface HostPlan extends WireEnd {
  readonly name: string;
  readonly address: string;
  readonly address6: string;
  /** The RDMA device. */
  readonly device: string;
  /** The other end of the wire, whose egress is the host's ingress. */
  readonly far: WireEnd;
}

const run = (program: string, ...args: string[]): Action => ({ run: [program, ...args] });

/** Milliseconds as iproute2 reads them; its own parser takes fractions. */
const milliseconds = (value: number): string => `${value}ms`;

const inNamespace = (namespace: string | undefined) => (namespace === undefined ? [] : ['-n', namespace]);

/** @param handle of the qdisc; a new one each time, because netem keeps the options that a change leaves out. */
export function shapeWire({ netdev, namespace }: WireEnd, shape: WireShape, handle: number): Action {
  const { delay, jitter, loss, slot, limit } = shape;
  const options = [
    ...(limit === undefined ? [] : ['limit', String(limit)]),
    ...(delay === undefined && jitter === undefined ? [] : ['delay', milliseconds(delay ?? 0)]),
    ...(jitter === undefined ? [] : [milliseconds(jitter)]),
    ...(loss === undefined ? [] : ['loss', `${loss}%`]),
    ...(slot === undefined ? [] : ['slot', milliseconds(slot[0]), milliseconds(slot[1])]),
  ];
  const id = `${handle.toString(16)}:`;
  return run(
    'tc',
    ...inNamespace(namespace),
    ...['qdisc', 'replace', 'dev', netdev, 'root', 'handle', id, 'netem', ...options],
  );
}

/** Lets packets through as they come again. */
export function unshapeWire({ netdev, namespace }: WireEnd): Action {
  return run('tc', ...inNamespace(namespace), 'qdisc', 'delete', 'dev', netdev, 'root');
}

/** One siw device on one end of a wire, in the initial namespace: enough for a process that connects to itself. */
export const singleDevice: readonly Action[] = [
  run('ip', 'link', 'add', 'wire0', 'type', 'veth', 'peer', 'name', 'wire1'),
  run('ip', 'address', 'add', '10.77.0.1/24', 'dev', 'wire0'),
  run('ip', 'address', 'add', 'fd00:77::1/64', 'dev', 'wire0', 'nodad'),
  run('ip', 'link', 'set', 'wire0', 'up'),
  run('ip', 'link', 'set', 'wire1', 'up'),
  run('rdma', 'link', 'add', 'siw0', 'type', 'siw', 'netdev', 'wire0'),
];

const bridge = 'hosts';

export function planHosts(count: number): HostPlan[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `h${index + 1}`;
    return {
      name,
      namespace: name,
      address: `10.79.0.${index + 1}`,
      address6: `fd00:79::${(index + 1).toString(16)}`,
      netdev: `wire-${name}`,
      device: `siw_${name}`,
      far: { netdev: `port-${name}` },
    };
  });
}

export function createHostActions(hosts: readonly HostPlan[]): Action[] {
  return [
    // Snooping would swallow IPv6 neighbour solicitations until the bridge has learnt who listens.
    run('ip', 'link', 'add', bridge, 'type', 'bridge', 'mcast_snooping', '0'),
    run('ip', 'link', 'set', bridge, 'up'),
    ...hosts.flatMap((host, index) => createHost(host, 101 + index)),
  ];
}

function createHost(host: HostPlan, ifindex: number): Action[] {
  const { name, netdev, address, address6, device } = host;
  const index = String(ifindex);
  const port = host.far.netdev;
  return [
    run('ip', 'netns', 'add', name),
    // Two siw devices whose network devices have the same index cannot tell their connections apart, and the index of
    // a device is its namespace's own: so each host's has one that no other host has.
    run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', netdev, 'index', index),
    run('ip', 'link', 'set', port, 'master', bridge, 'up'),
    run('ip', 'link', 'set', netdev, 'netns', name),
    run('ip', '-n', name, 'link', 'set', 'lo', 'up'),
    run('ip', '-n', name, 'address', 'add', `${address}/24`, 'dev', netdev),
    run('ip', '-n', name, 'address', 'add', `${address6}/64`, 'dev', netdev, 'nodad'),
    run('ip', '-n', name, 'link', 'set', netdev, 'up'),
    // siw stays in the namespace that it is made in, so it comes after the move.
    run('ip', 'netns', 'exec', name, 'rdma', 'link', 'add', device, 'type', 'siw', 'netdev', netdev),
  ];
}

export function removeHostActions(hosts: readonly HostPlan[]): Action[] {
  return [
    ...hosts.map(({ device }) => run('rdma', 'link', 'delete', device)),
    ...hosts.flatMap(({ name, far }) => [
      run('ip', 'link', 'delete', far.netdev),
      run('ip', 'netns', 'delete', name),
    ]),
    run('ip', 'link', 'delete', bridge),
  ];
}

/** Two rxe devices on the ends of a wire, both in the initial namespace: rxe 6.1 works in no other. */
export type PairPlan = readonly [HostPlan, HostPlan];

/** @param number tells pairs in one kernel apart: 0 is there when the guest has booted. */
export function planRxePair(number: number): PairPlan {
  const end = (side: 0 | 1): HostPlan => ({
    name: `rxe${2 * number + side}`,
    address: `10.78.${number}.${side + 1}`,
    address6: `fd00:78:${number}::${side + 1}`,
    netdev: `wire${2 + 2 * number + side}`,
    device: `rxe${2 * number + side}`,
    far: { netdev: `wire${2 + 2 * number + (1 - side)}` },
  });
  return [end(0), end(1)];
}

type Family = '-4' | '-6';
const families: readonly Family[] = ['-4', '-6'];

/** Of the routing rules: the kernel has the one for what is local at 0, where no other can come before it. */
const priorities = { arriving: '100', leaving: '200', local: '300' } as const;

/** The table of routes that force the packets of one end over the wire. */
const routeTable = ({ netdev }: WireEnd): string => String(1000 + Number(netdev.replace('wire', '')));

export function createRxePairActions(pair: PairPlan): Action[] {
  const [left, right] = pair;
  return [
    run('ip', 'link', 'add', left.netdev, 'type', 'veth', 'peer', 'name', right.netdev),
    ...pair.flatMap(({ netdev, address, address6 }) => [
      run('ip', 'address', 'add', `${address}/24`, 'dev', netdev),
      run('ip', 'address', 'add', `${address6}/64`, 'dev', netdev, 'nodad'),
      run('ip', 'link', 'set', netdev, 'up'),
    ]),
    ...pair.flatMap(({ netdev }) => [
      // Packets arrive that carry an address of this very machine as their source: the kernel takes them for forged.
      { write: `/proc/sys/net/ipv4/conf/${netdev}/accept_local`, text: '1' },
      { write: `/proc/sys/net/ipv4/conf/${netdev}/rp_filter`, text: '0' },
    ]),
    ...families.flatMap((family) => [
      ...pair.map(({ netdev }) => fromTheWire(family, netdev)),
      ...overTheWire(family, left, right),
      ...overTheWire(family, right, left),
    ]),
    ...pair.map(({ netdev, device }) => run('rdma', 'link', 'add', device, 'type', 'rxe', 'netdev', netdev)),
  ];
}

/** What arrives is for this machine. */
function fromTheWire(family: Family, netdev: string): Action {
  return run('ip', family, 'rule', 'add', 'priority', priorities.arriving, 'iif', netdev, 'lookup', 'local');
}

/**
 * Both addresses are local, and the kernel would keep the traffic between them in its loopback: all but what has arrived
 * is routed through the wire. rdma_cm asks for routes without an interface that packets come from, so the rule says none.
 */
function overTheWire(family: Family, from: HostPlan, to: HostPlan): Action[] {
  const [source, target] = family === '-4' ? [from.address, to.address] : [from.address6, to.address6];
  const table = routeTable(from);
  return [
    run('ip', family, 'route', 'add', target, 'dev', from.netdev, 'src', source, 'table', table),
    run('ip', family, 'rule', 'add', 'priority', priorities.leaving, 'to', target, 'lookup', table),
  ];
}

/** Moves the kernel's first rule behind those of the wires. */
export const localRulesLast: readonly Action[] = families.flatMap((family) => [
  run('ip', family, 'rule', 'add', 'priority', priorities.local, 'lookup', 'local'),
  run('ip', family, 'rule', 'delete', 'priority', '0'),
]);

export function removeRxePairActions(pair: PairPlan): Action[] {
  return [
    ...pair.map(({ device }) => run('rdma', 'link', 'delete', device)),
    run('ip', 'link', 'delete', pair[0].netdev),
    ...families.flatMap((family) =>
      pair.flatMap((end) => [
        run('ip', family, 'rule', 'delete', 'priority', priorities.arriving, 'iif', end.netdev),
        run('ip', family, 'rule', 'delete', 'priority', priorities.leaving, 'lookup', routeTable(end)),
      ]),
    ),
  ];
}
