import { invalidArgumentType, requireInteger } from '../errors.js';
import { MemoryRegion } from './memory-region.js';
import { RequestRing, type RingSge } from './request-ring.js';

/** A part of a registered region: `ibv_sge`. */
export interface Sge {
  region: MemoryRegion;
  /** Bytes; default 0. */
  offset?: number;
  /** Bytes; default: to the end of the region. */
  length?: number;
}

function toRingSge(sge: Sge, name: string): RingSge {
  if (typeof sge !== 'object' || sge === null || !(sge.region instanceof MemoryRegion)) {
    throw invalidArgumentType(name, 'an object with a MemoryRegion as region', sge);
  }
  const { region, offset = 0, length } = sge;
  requireInteger(`${name}.offset`, offset, 0, region.length);
  const rest = region.length - offset;
  const taken = length === undefined ? rest : requireInteger(`${name}.length`, length, 0, rest);
  return { region: region.handle, offset, length: taken };
}

/** Checks a scatter/gather list, and names its regions by their handles. */
export function toRingSges(sges: readonly Sge[], name: string): RingSge[] {
  if (!Array.isArray(sges)) throw invalidArgumentType(name, 'an array', sges);
  requireInteger(`${name}.length`, sges.length, 0, RequestRing.maxSges);
  return sges.map((sge: Sge, i) => toRingSge(sge, `${name}[${i}]`));
}
