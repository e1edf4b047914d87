import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { Device, type DeviceSummary } from 'node-rdma/verbs';
import type { Place } from './trial.js';

interface RdmaLink {
  ifname: string;
  netdev?: string;
}

/** Both ends of a trial on a device of this host. Throws where it has no device or no address of that name. */
export function findDevicePlace(name: string): { place: Place; device: DeviceSummary } {
  const device = Device.list().find((summary) => summary.name === name);
  if (device === undefined) {
    const names = Device.list().map((summary) => summary.name);
    throw new Error(`there is no RDMA device ${name} here, but: ${names.join(', ') || 'none'}`);
  }
  const links = JSON.parse(execFileSync('rdma', ['-j', 'link', 'show'], { encoding: 'utf8' })) as RdmaLink[];
  const netdev = links.find((link) => link.ifname === name)?.netdev;
  const address = (networkInterfaces()[netdev ?? ''] ?? []).find(({ family }) => family === 'IPv4')?.address;
  if (address === undefined) throw new Error(`${name} has no network interface with an IPv4 address`);
  return { place: { address, command: (argv) => [...argv] }, device };
}
