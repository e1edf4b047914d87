/** Operations of a work request, by their `ibv_wr_opcode` (`ibv_post_send(3)`); `receive` is `ibv_post_recv(3)`. */
export const opcodes = {
  write: 0,
  writeWithImmediate: 1,
  send: 2,
  sendWithImmediate: 3,
  read: 4,
  compareAndSwap: 5,
  fetchAndAdd: 6,
  localInvalidate: 7,
  bindMemoryWindow: 8,
  sendWithInvalidate: 9,
  receive: 128,
} as const;

/** The operation of a work request: `ibv_wr_opcode`, or `receive`. */
export type Opcode = keyof typeof opcodes;

const names = new Map<number, Opcode>(
  Object.entries(opcodes).map(([name, value]) => [value, name as Opcode]),
);

export function opcodeName(opcode: number): Opcode | 'unknown' {
  return names.get(opcode) ?? 'unknown';
}

/** Bits of the `flags` of a work-request record. */
export const requestFlags = { signaled: 1, fence: 2, solicited: 4, inline: 8 } as const;

/** Bits of `ibv_wc_flags`. */
/** Beside them `datagram`: a message that came to a UD queue pair. */
export const completionFlags = { grh: 1, withImmediate: 2, withInvalidate: 8, datagram: 128 } as const;
