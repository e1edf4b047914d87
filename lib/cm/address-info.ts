import { useBinding } from '../binding/addon.js';
import type { NativeAddressInfo } from '../binding/cm.js';
import { invalidArgumentType, invalidArgumentValue, requireOneOf, requireOptions } from '../errors.js';
import { type CmAddress, checkAddress } from './parameters.js';
import { type PortSpace, portSpaces } from './port-space.js';

/** Hints for `rdma_getaddrinfo(3)`. */
export interface AddressInfoOptions {
  /** The result is to be bound, not connected to: `RAI_PASSIVE`; default false. */
  passive?: boolean;
  /** `node` is a numeric address, and no name server is asked: `RAI_NUMERICHOST`; default false. */
  numeric?: boolean;
  /** Do not look for a route: `RAI_NOROUTE`; default false. */
  noRoute?: boolean;
  /** 4 or 6; default: what the name has. */
  family?: 4 | 6;
  /** Default `TCP`. */
  portSpace?: PortSpace;
  /** Default: what the port space has. */
  type?: 'RC' | 'UC' | 'UD';
  /** The address to connect from, taken over into the result. */
  source?: CmAddress;
  /** The address to connect to, in place of `node` and `service`. */
  destination?: CmAddress;
}

/** One result of `rdma_getaddrinfo(3)`, `struct rdma_addrinfo`. */
export interface AddressInfo {
  passive: boolean;
  /** 4, 6, or 0 for an address of InfiniBand's own. */
  family: 4 | 6 | 0;
  portSpace: PortSpace | null;
  type: 'RC' | 'UC' | 'UD' | null;
  sourceAddress: CmAddress | null;
  destinationAddress: CmAddress | null;
  /** Canonical names, where there are any. */
  sourceName: string | null;
  destinationName: string | null;
  /** Routing data of InfiniBand: path records. */
  route: Uint8Array | null;
  /** What a connection sends before the private data: of InfiniBand's address family. */
  connect: Uint8Array | null;
}

const RAI_PASSIVE = 1;
const RAI_NUMERICHOST = 2;
const RAI_NOROUTE = 4;
const AF_INET = 2;
const AF_INET6 = 10;
const queuePairTypes = { RC: 2, UC: 3, UD: 4 } as const;

function nameOf<Name extends string>(numbers: Readonly<Record<Name, number>>, number: number): Name | null {
  const names = Object.keys(numbers) as Name[];
  return names.find((name) => numbers[name] === number) ?? null;
}

function toAddressInfo({ flags, family, portSpace, queuePairType, ...rest }: NativeAddressInfo): AddressInfo {
  return {
    passive: (flags & RAI_PASSIVE) !== 0,
    family: family === AF_INET ? 4 : family === AF_INET6 ? 6 : 0,
    portSpace: nameOf(portSpaces, portSpace),
    type: nameOf(queuePairTypes, queuePairType),
    ...rest,
  };
}

function optional<T, R>(value: T | undefined, convert: (value: T) => R, fallback: R): R {
  return value === undefined ? fallback : convert(value);
}

/**
 * `rdma_getaddrinfo(3)`, off the event loop: where a host and a service are, as `CmId.bind()` and
 * `CmId.resolveAddress()` take it. Rejects with `ENOENT` for a name that is unknown.
 */
export async function getAddressInfo(
  node: string | null,
  service: string | null,
  options: AddressInfoOptions = {},
): Promise<AddressInfo[]> {
  requireOptions('options', options);
  for (const [name, value] of Object.entries({ node, service })) {
    if (value !== null && typeof value !== 'string')
      throw invalidArgumentType(name, 'a string or null', value);
  }
  const { passive, numeric, noRoute, family, portSpace = 'TCP', type, source, destination } = options;
  if (family !== undefined && family !== 4 && family !== 6) {
    throw invalidArgumentValue('options.family', family, 'must be 4 or 6');
  }
  requireOneOf('options.portSpace', portSpace, Object.keys(portSpaces));
  const queuePairType = optional(
    type,
    (name) => queuePairTypes[requireOneOf('options.type', name, ['RC', 'UC', 'UD'] as const)],
    0,
  );
  const found = await useBinding().native.getAddressInfo(node, service, {
    flags:
      (passive === true ? RAI_PASSIVE : 0) |
      (numeric === true ? RAI_NUMERICHOST : 0) |
      (noRoute === true ? RAI_NOROUTE : 0),
    family: family === 4 ? AF_INET : family === 6 ? AF_INET6 : 0,
    portSpace: portSpaces[portSpace],
    queuePairType,
    source: optional(source, (address) => checkAddress('options.source', address), null),
    destination: optional(destination, (address) => checkAddress('options.destination', address), null),
  });
  return found.map(toAddressInfo);
}
