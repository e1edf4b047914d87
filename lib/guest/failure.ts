/** Exit statuses of the guest command that are its own and not the command's, after those of timeout(1). */
export const exitStatus = {
  usage: 2,
  setUpImpossible: 123,
  timeLimit: 124,
  guestDied: 125,
} as const;

/** Something a person can cure: the message says how, and no stack trace is shown. */
export class GuestFailure extends Error {
  readonly exitStatus: number;

  constructor(message: string, exitStatus: number) {
    super(message);
    this.name = 'GuestFailure';
    this.exitStatus = exitStatus;
  }
}
