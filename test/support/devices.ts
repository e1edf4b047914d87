import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

/** A device, of the guest mostly, and the address that this process connects to itself by. */
export interface GuestDevice {
  readonly device: string;
  readonly address: string;
  readonly iwarp: boolean;
}

export const siw: GuestDevice = { device: 'siw0', address: '10.77.0.1', iwarp: true };
export const rxe: GuestDevice = { device: 'rxe0', address: '10.78.0.1', iwarp: false };

/** A device of this machine, with the address of the network device below it. */
function ownDevice(name: string): GuestDevice {
  interface Link {
    ifname: string;
    netdev?: string;
  }
  const links = JSON.parse(execFileSync('rdma', ['-j', 'link'], { encoding: 'utf8' })) as Link[];
  const netdev = links.find(({ ifname }) => ifname === name)?.netdev ?? '';
  const address = networkInterfaces()[netdev]?.find(({ family }) => family === 'IPv4')?.address;
  if (address === undefined)
    throw new Error(`the device ${name} has no IPv4 address: see rdma link, ip address`);
  const iwarp = readFileSync(`/sys/class/infiniband/${name}/node_type`, 'utf8').includes('RNIC');
  return { device: name, address, iwarp };
}

const own = process.env.NODE_RDMA_TEST_DEVICE;

/** For `describe.each`: what a connection promises is the same on both, and on a device of this machine's own. */
export const devices: readonly (readonly [name: string, device: GuestDevice])[] =
  own === undefined
    ? [
        ['siw', siw],
        ['rxe', rxe],
      ]
    : [[own, ownDevice(own)]];
