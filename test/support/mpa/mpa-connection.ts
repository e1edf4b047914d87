import { once } from 'node:events';
import type { Socket } from 'node:net';
import { encodeFpdu } from './fpdu.js';
import { now } from './history.js';
import { Inbox } from './inbox.js';
import { OutstandingReads } from './message-order.js';
import { checkReply, describeMpaFrame, encodeMpaFrame, type MpaFrame, usesCrc } from './mpa-frame.js';
import { type Fpdu, MpaStream, type TimedFrame } from './mpa-stream.js';
import { ProtocolViolation } from './protocol-violation.js';
import { describeSegment, type Segment } from './segment.js';
import { encodeSegment } from './segment-codec.js';

export type Role = 'initiator' | 'responder';

/** The state of one MPA connection over a TCP socket, and the rules about who may speak when. */
export class MpaConnection {
  readonly inbox = new Inbox();
  readonly #role: Role;
  readonly #inbound: MpaStream;
  readonly #reads = new OutstandingReads();
  #socket: Socket | null = null;
  #request: MpaFrame | null = null;
  #reply: MpaFrame | null = null;
  #crc = false;
  #sent = 0;
  #received = 0;

  constructor(role: Role) {
    this.#role = role;
    this.#inbound = new MpaStream(role === 'initiator' ? 'reply' : 'request', {
      frame: (frame) => this.#frameReceived(frame),
      fpdu: (fpdu) => this.#fpduReceived(fpdu),
    });
  }

  attach(socket: Socket): void {
    this.#socket = socket;
    this.inbox.history.add(this.#role === 'initiator' ? 'TCP connection opened' : 'TCP connection accepted');
    socket.on('data', (bytes) => this.#guard(() => this.#bytesReceived(bytes)));
    // A reset is an end like any other: what matters is the order of what came before it.
    socket.on('error', (error) => this.inbox.addEnd(`TCP: ${error.message}`));
    socket.on('end', () => this.inbox.addEnd('FIN received'));
    socket.on('close', () => this.inbox.addEnd('TCP connection closed'));
  }

  async sendRequest(request: MpaFrame): Promise<void> {
    if (this.#role !== 'initiator' || this.#request !== null) throw new Error('no time for an MPA request');
    this.#request = request;
    await this.#writeFrame(request);
  }

  /** Sends what `compose` makes of the request. */
  async sendReply(compose: (request: MpaFrame) => MpaFrame): Promise<MpaFrame> {
    const request = this.#request;
    if (this.#role !== 'responder' || request === null || this.#reply !== null) {
      throw new Error('no time for an MPA reply');
    }
    const reply = compose(request);
    this.#reply = reply;
    if (!reply.reject && !this.inbox.isBroken) this.#startFpdus(request, reply);
    await this.#writeFrame(reply);
    return reply;
  }

  async sendSegment(segment: Segment): Promise<void> {
    if (this.#reply === null || this.#reply.reject) {
      throw this.inbox.failure('no FPDU without an accepting MPA reply');
    }
    if (this.#role === 'responder' && this.#received === 0) {
      throw this.inbox.failure("a responder's FPDU has to wait for the initiator's first (RFC 5044 §7.1)");
    }
    if (segment.opcode === 'read-request') this.#reads.add(segment);
    this.#sent++;
    this.inbox.history.add(`-> ${describeSegment(segment)}`);
    await this.#write(encodeFpdu(encodeSegment(segment), this.#crc));
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    if (socket !== null && !socket.destroyed) {
      const closed = once(socket, 'close');
      socket.end(() => socket.destroy());
      await closed;
    }
    this.inbox.throwUnreported();
  }

  #bytesReceived(bytes: Buffer): void {
    if (this.inbox.isBroken) return;
    this.#inbound.push(bytes, now());
    if (!this.#inbound.holdsData) return;
    throw new ProtocolViolation(
      this.#reply === null
        ? 'the initiator sent data before the MPA reply (RFC 5044 §7.1)'
        : 'data on a connection that was rejected (RFC 5044 §7.1)',
    );
  }

  #frameReceived(frame: TimedFrame): void {
    this.inbox.history.add(`<- ${describeMpaFrame(frame)}`, frame.at);
    if (frame.markers) throw new ProtocolViolation('the M flag: this peer speaks no markers');
    if (this.#role === 'responder') {
      this.#request = frame;
      this.inbox.addFrame(frame);
      return;
    }
    if (this.#request === null) {
      throw new ProtocolViolation('an MPA reply before the request (RFC 5044 §7.1)');
    }
    checkReply(this.#request, frame);
    this.#reply = frame;
    this.inbox.addFrame(frame);
    if (!frame.reject) this.#startFpdus(this.#request, frame);
  }

  #startFpdus(request: MpaFrame, reply: MpaFrame): void {
    this.#crc = usesCrc(request, reply);
    this.#inbound.startFpdus(this.#crc);
  }

  #fpduReceived(fpdu: Fpdu): void {
    this.#received++;
    this.inbox.history.add(`<- ${describeSegment(fpdu)}`, fpdu.at);
    if (this.#role === 'initiator' && this.#sent === 0) {
      throw new ProtocolViolation("an FPDU from the responder before the initiator's first (RFC 5044 §7.1)");
    }
    if (fpdu.opcode === 'read-response') this.#reads.check(fpdu);
    this.inbox.addFpdu(fpdu);
  }

  /** Runs what handles bytes from outside: a violation in them is kept for whoever waits. */
  #guard(handle: () => void): void {
    try {
      handle();
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error;
      this.inbox.addViolation(error);
    }
  }

  async #writeFrame(frame: MpaFrame): Promise<void> {
    this.inbox.history.add(`-> ${describeMpaFrame(frame)}`);
    await this.#write(encodeMpaFrame(frame));
  }

  async #write(bytes: Buffer): Promise<void> {
    const socket = this.#socket;
    if (socket === null) throw this.inbox.failure('no TCP connection yet');
    await new Promise<void>((resolve, reject) => {
      socket.write(bytes, (error) => (error ? reject(this.inbox.failure(error.message)) : resolve()));
    });
  }
}
