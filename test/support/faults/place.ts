import type { Action } from '#lib/guest/action.js';
import { performAction } from '#lib/guest/action.js';
import { createHosts, createRxePair, type Network } from '#lib/guest/network.js';
import { planRxePair } from '#lib/guest/network-plan.js';
import { Egress, Wire } from '#lib/guest/wire.js';
import type { Device } from './cell.js';
import { wireDelay } from './terms.js';

/** A host of the watched connection or of its peer. */
export interface PlaceHost {
  readonly address: string;
  readonly device: string;
  readonly netdev: string;
  readonly namespace?: string;
  command(argv: readonly string[]): string[];
  readonly wire: Wire;
}

/** Two hosts and the wire between them, which faults are done to. */
export interface Place {
  readonly subject: PlaceHost;
  readonly peer: PlaceHost;
  /** An address of this kind of device that no fault concerns. */
  readonly bystander: string;
  close(): Promise<void>;
}

const quiet = '10.81.0.1';

const run = (program: string, ...args: string[]): Action => ({ run: [program, ...args] });

async function siwPlace(): Promise<Place> {
  const network = await createHosts(2);
  const host = (number: number): PlaceHost => {
    const host = network.host(number);
    return { ...host, namespace: host.name };
  };
  const [subject, peer] = [host(1), host(2)];
  // A device whose network no fault concerns: siw ends every connection of one whose link goes down.
  const inHost = (...args: string[]) => performAction(run('ip', '-n', subject.namespace!, ...args));
  await inHost('link', 'add', 'quiet', 'type', 'veth', 'peer', 'name', 'silent');
  await inHost('address', 'add', `${quiet}/24`, 'dev', 'quiet');
  await inHost('link', 'set', 'quiet', 'up');
  await inHost('link', 'set', 'silent', 'up');
  await addDevice({ ...subject, device: 'siw_quiet', netdev: 'quiet' }, 'siw');
  const close = async () => {
    await removeDevice({ ...subject, device: 'siw_quiet' });
    await network.close();
  };
  return { subject, peer, bystander: quiet, close };
}

/** librdmacm keeps every device open as long as its process lives: the pair that the guest has stays. */
async function rxePlace(): Promise<Place> {
  const plans = planRxePair(0);
  const [left, right] = plans.map((plan) => new Egress(plan)) as [Egress, Egress];
  const host = (plan: (typeof plans)[number], near: Egress, far: Egress): PlaceHost => ({
    address: plan.address,
    device: plan.device,
    netdev: plan.netdev,
    command: (argv) => [...argv],
    wire: new Wire(near, far),
  });
  const others: Network = await createRxePair();
  return {
    subject: host(plans[0], left, right),
    peer: host(plans[1], right, left),
    bystander: others.host(1).address,
    close: async () => {
      await left.shape({});
      await right.shape({});
      await others.close();
    },
  };
}

export function openPlace(device: Device): Promise<Place> {
  return device === 'siw' ? siwPlace() : rxePlace();
}

const inNamespace = ({ namespace }: PlaceHost) => (namespace === undefined ? [] : ['-n', namespace]);

/** The wire as every cell begins with it, and its neighbours unknown to each other. */
export async function makePlain(place: Place): Promise<void> {
  for (const host of [place.subject, place.peer]) {
    await host.wire.shape({ delay: wireDelay });
    await performAction(run('ip', ...inNamespace(host), 'neigh', 'flush', 'dev', host.netdev));
  }
}

export async function lose(place: Place, loss: number): Promise<void> {
  for (const host of [place.subject, place.peer]) await host.wire.shape({ delay: wireDelay, loss });
}

export async function setLink(host: PlaceHost, up: boolean): Promise<void> {
  await performAction(run('ip', ...inNamespace(host), 'link', 'set', host.netdev, up ? 'up' : 'down'));
}

/** How often TCP repeats a segment before it gives a connection up (tcp(7)); siw learns of a silent peer by that alone. */
export async function setPatience({ namespace }: PlaceHost, retries: number): Promise<void> {
  if (namespace === undefined) return;
  const setting = `echo ${retries} >/proc/sys/net/ipv4/tcp_retries2`;
  await performAction(run('ip', 'netns', 'exec', namespace, 'sh', '-c', setting));
}

const inside = ({ namespace }: PlaceHost, ...argv: readonly [string, ...string[]]): Action =>
  namespace === undefined ? { run: argv } : run('ip', 'netns', 'exec', namespace, ...argv);

/** Waits in the kernel until no process has the device open. */
export function removeDevice(host: PlaceHost): Promise<void> {
  return performAction(inside(host, 'rdma', 'link', 'delete', host.device));
}

export function addDevice(host: PlaceHost, type: Device): Promise<void> {
  return performAction(inside(host, 'rdma', 'link', 'add', host.device, 'type', type, 'netdev', host.netdev));
}
