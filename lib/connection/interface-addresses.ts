import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/** Every address of every network interface of this host. */
export function interfaceAddresses(): NetworkInterfaceInfo[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
}
