import type { NativeAddressVector } from '../binding/verbs.js';
import { invalidArgumentType, requireInteger } from '../errors.js';

/** Where a queue pair or an address handle leads: `ibv_ah_attr`, see `ibv_create_ah(3)`. */
export interface AddressVector {
  /** The destination's GID, 16 bytes: always on RoCE, on InfiniBand across subnets and for multicast. Default null. */
  gid?: Uint8Array | null;
  /** Index of this side's own GID in the table of the port, 0 to 255; default 0. */
  sgidIndex?: number;
  /** Routers, 0 to 255; default 64. */
  hopLimit?: number;
  /** 0 to 255; default 0. */
  trafficClass?: number;
  /** 20 bits; default 0. */
  flowLabel?: number;
  /** The destination's local identifier, 16 bits: InfiniBand only; default 0. */
  lid?: number;
  /** Low bits of this side's LID, 0 to 127; default 0. */
  pathBits?: number;
  /** `ibv_rate`, 0 to 255; default 0: as fast as the port. */
  staticRate?: number;
  /** 0 to 15; default 0. */
  serviceLevel?: number;
  /** This side's port, from 1; default 1. */
  portNumber?: number;
}

export function requireGid(name: string, gid: unknown): Uint8Array {
  if (!(gid instanceof Uint8Array)) throw invalidArgumentType(name, 'a Uint8Array of 16 bytes', gid);
  requireInteger(`${name}.length`, gid.length, 16, 16);
  return gid;
}

export function toNativeAddressVector(vector: AddressVector, name: string): NativeAddressVector {
  if (typeof vector !== 'object' || vector === null) throw invalidArgumentType(name, 'an object', vector);
  const field = (key: Exclude<keyof AddressVector, 'gid'>, fallback: number, min: number, max: number) =>
    requireInteger(`${name}.${key}`, vector[key] ?? fallback, min, max);
  return {
    gid: vector.gid === undefined || vector.gid === null ? null : requireGid(`${name}.gid`, vector.gid),
    sgidIndex: field('sgidIndex', 0, 0, 255),
    hopLimit: field('hopLimit', 64, 0, 255),
    trafficClass: field('trafficClass', 0, 0, 255),
    flowLabel: field('flowLabel', 0, 0, 0xf_ffff),
    lid: field('lid', 0, 0, 0xffff),
    pathBits: field('pathBits', 0, 0, 127),
    staticRate: field('staticRate', 0, 0, 255),
    serviceLevel: field('serviceLevel', 0, 0, 15),
    portNumber: field('portNumber', 1, 1, 255),
  };
}
