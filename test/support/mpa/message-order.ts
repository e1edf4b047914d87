import { ProtocolViolation } from './protocol-violation.js';
import type { ReadRequest, ReadResponse, Segment, Send, Write } from './segment.js';

/**
 * What the segments of one direction owe to one another: message sequence numbers that count from 1 in each queue,
 * offsets without gaps, no message begun while another of its kind is unfinished (RFC 5041 §5, RFC 5040 §5.5).
 */
export class MessageOrder {
  #sends = 0;
  #reads = 0;
  #terminated = false;
  #unfinishedSend: Send | null = null;
  #unfinishedTagged: Write | ReadResponse | null = null;

  check(segment: Segment): void {
    if (this.#terminated) throw new ProtocolViolation('an FPDU after a Terminate (RFC 5040 §5.4)');
    switch (segment.opcode) {
      case 'send':
        this.#checkSend(segment);
        break;
      case 'write':
      case 'read-response':
        this.#checkTagged(segment);
        break;
      case 'read-request':
        expectMsn('Read Request', ++this.#reads, segment.msn);
        break;
      case 'terminate':
        this.#terminated = true;
        expectMsn('Terminate', 1, segment.msn);
    }
  }

  #checkSend(segment: Send): void {
    const before = this.#unfinishedSend;
    const offset = before === null ? 0 : before.messageOffset + before.payload.length;
    if (before === null) this.#sends++;
    expectMsn('Send', this.#sends, segment.msn);
    if (segment.messageOffset !== offset) {
      throw new ProtocolViolation(`offset ${segment.messageOffset} where ${offset} was due (RFC 5041 §5.2)`);
    }
    if (
      before !== null &&
      (before.solicited !== segment.solicited || before.invalidate !== segment.invalidate)
    ) {
      throw new ProtocolViolation('the segments of one Send differ in their opcode (RFC 5040 §5.3)');
    }
    this.#unfinishedSend = segment.last ? null : segment;
  }

  #checkTagged(segment: Write | ReadResponse): void {
    const before = this.#unfinishedTagged;
    if (before !== null) {
      if (before.opcode !== segment.opcode) {
        throw new ProtocolViolation(
          `a ${segment.opcode} within an unfinished ${before.opcode} (RFC 5041 §5.3)`,
        );
      }
      const offset = before.taggedOffset + BigInt(before.payload.length);
      if (segment.stag !== before.stag || segment.taggedOffset !== offset) {
        throw new ProtocolViolation(`a ${segment.opcode} continues at another place (RFC 5041 §5.2)`);
      }
    }
    this.#unfinishedTagged = segment.last ? null : segment;
  }
}

/** The Read Requests of one side that await their Responses, which come in order: RFC 5040 §5.2. */
export class OutstandingReads {
  readonly #requests: ReadRequest[] = [];
  #placed = 0;

  add(request: ReadRequest): void {
    this.#requests.push(request);
  }

  check(response: ReadResponse): void {
    const request = this.#requests[0];
    if (request === undefined)
      throw new ProtocolViolation('a Read Response that nobody asked for (RFC 5040 §5.2)');
    if (response.stag !== request.sinkStag) {
      throw new ProtocolViolation('a Read Response to another STag than asked for (RFC 5040 §4.5)');
    }
    if (response.taggedOffset !== request.sinkOffset + BigInt(this.#placed)) {
      throw new ProtocolViolation('a Read Response to another offset than asked for (RFC 5040 §4.5)');
    }
    this.#placed += response.payload.length;
    const isComplete = this.#placed === request.size;
    if (this.#placed > request.size || response.last !== isComplete) {
      throw new ProtocolViolation(
        `a Read Response of ${this.#placed} where ${request.size} bytes were asked for`,
      );
    }
    if (isComplete) {
      this.#requests.shift();
      this.#placed = 0;
    }
  }
}

function expectMsn(what: string, expected: number, msn: number): void {
  if (msn !== expected) {
    throw new ProtocolViolation(`${what} with MSN ${msn} where ${expected} was due (RFC 5041 §5.1)`);
  }
}
