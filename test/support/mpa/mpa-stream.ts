import { decodeFpdu } from './fpdu.js';
import { MessageOrder } from './message-order.js';
import { decodeMpaFrame, type MpaFrame } from './mpa-frame.js';
import type { Segment } from './segment.js';
import { decodeSegment } from './segment-codec.js';

/** An MPA frame and when its last byte came, in milliseconds since 1970. */
export type TimedFrame = MpaFrame & { readonly at: number };

/** An FPDU's content and when its last byte came, in milliseconds since 1970. */
export type Fpdu = Segment & { readonly at: number };

export interface MpaStreamEvents {
  frame(frame: TimedFrame): void;
  fpdu(fpdu: Fpdu): void;
}

/**
 * One direction of an MPA connection: one frame, then FPDUs. Throws a ProtocolViolation at the first byte that is
 * wrong; what was right before it has been reported by then.
 */
export class MpaStream {
  readonly #kind: MpaFrame['kind'];
  readonly #events: MpaStreamEvents;
  readonly #order = new MessageOrder();
  readonly #held: { bytes: Buffer; at: number }[] = [];
  #pending = Buffer.alloc(0);
  #frame: TimedFrame | null = null;
  #crc: boolean | null = null;

  constructor(kind: MpaFrame['kind'], events: MpaStreamEvents) {
    this.#kind = kind;
    this.#events = events;
  }

  /** Whether bytes have come that may not be decoded before both frames are known. */
  get holdsData(): boolean {
    return this.#held.length > 0;
  }

  push(bytes: Buffer, at: number): void {
    if (this.#frame === null) this.#pushFrame(bytes, at);
    else if (this.#crc === null) this.#held.push({ bytes, at });
    else this.#pushFpdus(bytes, at, this.#crc);
  }

  /** Both frames are known, and with them whether FPDUs carry a CRC. */
  startFpdus(crc: boolean): void {
    this.#crc = crc;
    for (const { bytes, at } of this.#held.splice(0)) this.#pushFpdus(bytes, at, crc);
  }

  #pushFrame(bytes: Buffer, at: number): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const decoded = decodeMpaFrame(this.#pending, this.#kind);
    if (decoded === null) return;
    const rest = this.#pending.subarray(decoded.length);
    this.#pending = Buffer.alloc(0);
    this.#frame = { ...decoded.frame, at };
    if (rest.length > 0) this.#held.push({ bytes: rest, at });
    this.#events.frame(this.#frame);
  }

  #pushFpdus(bytes: Buffer, at: number, crc: boolean): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    for (;;) {
      const decoded = decodeFpdu(this.#pending, crc);
      if (decoded === null) return;
      const segment = decodeSegment(decoded.ulpdu);
      this.#pending = this.#pending.subarray(decoded.length);
      this.#order.check(segment);
      this.#events.fpdu({ ...segment, at });
    }
  }
}
