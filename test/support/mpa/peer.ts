import type { EnhancedSetup } from './enhanced-setup.js';
import type { MpaFrame } from './mpa-frame.js';
import type { Fpdu, TimedFrame } from './mpa-stream.js';
import type { ReadRequest, ReadResponse, Send, Terminate, Write } from './segment.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Wait {
  /** Milliseconds until the wait fails; 10,000 if not given. */
  readonly within?: number;
}

export interface RequestOptions {
  readonly privateData?: Uint8Array;
  /** Ask for CRCs; off if not given, as siw has it. */
  readonly crc?: boolean;
  /**
   * null: plain RFC 5044, revision 1; siw then answers no Read, for want of a depth ("IRQ exceeded or null, size 0").
   * Otherwise revision 2, with IRD and ORD 1 and without RTR if not given.
   */
  readonly enhanced?: Partial<EnhancedSetup> | null;
}

export interface ReplyOptions {
  readonly privateData?: Uint8Array;
  readonly reject?: boolean;
  /** Ask for CRCs even if the request did not. */
  readonly crc?: boolean;
  /** Overrides of the enhanced set-up that answers the request's: its depths mirrored, one RTR of those offered. */
  readonly enhanced?: Partial<EnhancedSetup>;
}

export interface TerminateOptions {
  readonly layer?: number;
  readonly type?: number;
  readonly code?: number;
}

/**
 * One end of an MPA connection without an RDMA device. Every wait rejects, with the connection's history in the
 * message, when the other side has broken a rule, when the connection has ended, or when the time is up.
 */
export interface Peer {
  /** Where the peer listens, or the local end of its connection. */
  readonly localAddress: Address;

  /** Initiator: sends the MPA request. */
  sendRequest(options?: RequestOptions): Promise<void>;
  /** Initiator: the MPA reply, whether it accepts or rejects. */
  receiveReply(wait?: Wait): Promise<TimedFrame>;
  /** Responder: the MPA request of the one connection that is accepted. */
  receiveRequest(wait?: Wait): Promise<TimedFrame>;
  /** Responder: sends the MPA reply, which is also returned. */
  sendReply(options?: ReplyOptions): Promise<MpaFrame>;

  /** The next FPDU in order. */
  nextFpdu(wait?: Wait): Promise<Fpdu>;
  /** The next FPDU, which must be a Read Request of no bytes. */
  expectReadRequest0(wait?: Wait): Promise<ReadRequest & { at: number }>;
  /** The next FPDU, which must be a Read Response of no bytes. */
  expectReadResponse0(wait?: Wait): Promise<ReadResponse & { at: number }>;
  /** The next FPDU, which must be a Write of no bytes. */
  expectWrite0(wait?: Wait): Promise<Write & { at: number }>;
  /** The next FPDUs, which must be one whole Send; `at` is the time of its last segment. */
  expectSend(wait?: Wait): Promise<Send & { at: number }>;
  /** The next FPDU, which must be a Terminate. */
  expectTerminate(wait?: Wait): Promise<Terminate & { at: number }>;
  /** Rejects if an FPDU is waiting, or one comes, or the connection ends, within `duration` milliseconds. */
  expectSilence(duration: number): Promise<void>;
  /** The other side ends the connection, with a FIN or a reset, and has sent no further FPDU. */
  expectEnd(wait?: Wait): Promise<void>;

  /** A Send, in as many segments as its length needs. */
  send(payload: Uint8Array): Promise<void>;
  sendReadRequest0(): Promise<void>;
  /** Answers a Read Request of no bytes. */
  sendReadResponse0(request: ReadRequest): Promise<void>;
  sendWrite0(): Promise<void>;
  sendTerminate(options?: TerminateOptions): Promise<void>;

  /** What went over the connection, readable. */
  history(): Promise<string>;
  /** Ends the connection. Rejects if a violation was seen that no wait has reported. */
  close(): Promise<void>;
}
