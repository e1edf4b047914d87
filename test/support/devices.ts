/** A device of the guest, and the address that this process connects to itself by. */
export interface GuestDevice {
  readonly device: string;
  readonly address: string;
  readonly iwarp: boolean;
}

export const siw: GuestDevice = { device: 'siw0', address: '10.77.0.1', iwarp: true };
export const rxe: GuestDevice = { device: 'rxe0', address: '10.78.0.1', iwarp: false };

/** For `describe.each`: what a connection promises is the same on both. */
export const devices: readonly (readonly [name: string, device: GuestDevice])[] = [
  ['siw', siw],
  ['rxe', rxe],
];
