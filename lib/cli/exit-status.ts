/** What the command ends with, for scripts; `vm` has more of its own (lib/guest/failure.ts). */
export const exitStatus = {
  success: 0,
  /** What was asked for could not be done, or did not hold. */
  failure: 1,
  usage: 2,
} as const;
