/** Kinds of native objects. */
export type Kind =
  | 'SharedReceiveQueue'
  | 'AddressHandle'
  | 'MemoryWindow'
  | 'Device'
  | 'ProtectionDomain'
  | 'MemoryRegion'
  | 'CompletionChannel'
  | 'CompletionQueue'
  | 'QueuePair'
  | 'EventChannel'
  | 'CmId';

/** What one argument, or one property of an object, takes; `good` is a value that passes. */
export type Parameter =
  | { handle: Kind; orNone?: true }
  | { integer: readonly [min: number, max: number]; good: number; optional?: true }
  | { boolean: true }
  | { string: string; orNull?: true }
  | { bytes: true }
  | { view: true }
  | { object: Record<string, Parameter>; orNull?: true };

export const u8 = [0, 0xff] as const;
export const u16 = [0, 0xffff] as const;
export const u32 = [0, 0xffff_ffff] as const;
export const i31 = [0, 0x7fff_ffff] as const;
export const handle = (kind: Kind): Parameter => ({ handle: kind });
export const integer = (range: readonly [number, number], good = range[0]): Parameter => ({
  integer: range,
  good,
});
export const optional = (range: readonly [number, number]): Parameter => ({
  integer: range,
  good: range[0],
  optional: true,
});
