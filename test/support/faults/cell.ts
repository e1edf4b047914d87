/** What the life of a connection passes through, in this order. */
export const stages = [
  'resolving',
  'connecting',
  'requested',
  'established',
  'readPosted',
  'goPosted',
  'traffic',
  'closing',
] as const;

export const faults = [
  'peer killed',
  'peer stopped',
  'link down',
  'loss of 1 %',
  'loss of 20 %',
  'partition',
  'device removed',
  'port refused',
  'no route',
  'memlock exhausted',
  'descriptors exhausted',
  'backlog full',
  'queue overrun',
  'too few receives',
  'receive buffer too small',
  'access violation',
  'abort',
  'time-out',
  'close',
  'destroy',
] as const;

/** The side that is watched; the other one is its peer. */
export const sides = ['active', 'passive'] as const;
export const devices = ['siw', 'rxe'] as const;

export type Stage = (typeof stages)[number];
export type Fault = (typeof faults)[number];
export type Side = (typeof sides)[number];
export type Device = (typeof devices)[number];

/** One square of the matrix: this fault, at this stage of a connection, seen from this side, on this kind of device. */
export interface Cell {
  readonly device: Device;
  readonly side: Side;
  readonly stage: Stage;
  readonly fault: Fault;
}

export function nameOf({ device, side, stage, fault }: Cell): string {
  return `${device}, ${side}, ${stage}: ${fault}`;
}

export function everyCell(): Cell[] {
  return devices.flatMap((device) =>
    sides.flatMap((side) =>
      stages.flatMap((stage) => faults.map((fault) => ({ device, side, stage, fault }))),
    ),
  );
}
