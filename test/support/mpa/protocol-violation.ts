/** What the other side put on the wire breaks a rule of the protocol. The message names the rule's source. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}
