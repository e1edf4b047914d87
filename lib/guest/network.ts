import { existsSync } from 'node:fs';
import { type Action, batchActions, performAction, tryActions } from './action.js';
import {
  createHostActions,
  createRxePairActions,
  type HostPlan,
  planHosts,
  planRxePair,
  removeHostActions,
  removeRxePairActions,
  type WireEnd,
} from './network-plan.js';
import { Egress, Wire } from './wire.js';

export type { WireShape } from './network-plan.js';

/** One end of an RDMA connection: a network namespace of its own with siw, or a device of an rxe pair. */
export interface Host {
  readonly name: string;
  /** IPv4 */
  readonly address: string;
  readonly address6: string;
  /** Name of the RDMA device. */
  readonly device: string;
  /** Name of the network device below it, to capture on for example. */
  readonly netdev: string;
  readonly wire: Wire;
  /** `argv` as it has to be started from the initial namespace in order to run on this host. */
  command(argv: readonly string[]): string[];
}

/**
 * Hosts that reach each other. They are gone when it is closed, which waits in the kernel until no process has their
 * devices open: end those processes first.
 */
export interface Network extends AsyncDisposable {
  readonly hosts: readonly Host[];
  /** @param number from 1 */
  host(number: number): Host;
  close(): Promise<void>;
}

/**
 * Makes `count` network namespaces h1, h2, … on one bridge, each with an siw device. Works in the guest only: it wants
 * root, iproute2 and a kernel with siw, and takes the addresses 10.79.0.0/24 and fd00:79::/64.
 *
 * @example
 * await using network = await createHosts(2);
 * await network.host(1).wire.shape({ delay: 20 });
 * const [program, ...args] = network.host(1).command(['rping', '-s']);
 */
export async function createHosts(count: number): Promise<Network> {
  const plans = planHosts(count);
  return createNetwork(plans, createHostActions(plans), removeHostActions(plans));
}

/**
 * Makes two rxe devices on the ends of a wire. Both are in the initial namespace, where policy routing keeps their
 * traffic on the wire. Works in the guest only.
 */
export async function createRxePair(): Promise<Network> {
  // The guest has pair 0 from its start.
  let number = 1;
  while (existsSync(`/sys/class/net/${planRxePair(number)[0].netdev}`)) number += 1;
  const pair = planRxePair(number);
  return createNetwork(pair, createRxePairActions(pair), removeRxePairActions(pair));
}

async function createNetwork(
  plans: readonly HostPlan[],
  create: readonly Action[],
  remove: readonly Action[],
): Promise<Network> {
  try {
    for (const action of batchActions(create)) await performAction(action);
  } catch (error) {
    await tryActions(remove);
    throw error;
  }
  // The far end of an rxe device's wire is another one's near end: there is one egress for each.
  const egresses = new Map<string, Egress>();
  const egress = (end: WireEnd) => {
    const known = egresses.get(end.netdev) ?? new Egress(end);
    egresses.set(end.netdev, known);
    return known;
  };
  const hosts = plans.map((plan) => createHost(plan, new Wire(egress(plan), egress(plan.far))));
  let closing: Promise<void> | undefined;
  const close = async () => {
    const errors = await tryActions(remove);
    if (errors.length > 0) throw new AggregateError(errors, 'the network could not be removed');
  };
  const network: Network = {
    hosts,
    host(number) {
      const host = hosts[number - 1];
      if (host === undefined) throw new RangeError(`there is no host ${number} of ${hosts.length}`);
      return host;
    },
    close() {
      closing ??= close();
      return closing;
    },
    [Symbol.asyncDispose]: () => network.close(),
  };
  return network;
}

function createHost(plan: HostPlan, wire: Wire): Host {
  const { name, address, address6, device, netdev, namespace } = plan;
  return {
    name,
    address,
    address6,
    device,
    netdev,
    wire,
    command: (argv) => (namespace === undefined ? [...argv] : ['ip', 'netns', 'exec', namespace, ...argv]),
  };
}
