import type { TcpSegment } from './tcp-segment.js';

/** Bytes that TCP could deliver at a time: whatever was missing before them had come. */
export interface Chunk {
  readonly at: number;
  readonly bytes: Buffer;
}

/** A TCP connection as a capture shows it; the client is who sent the first SYN. */
export interface TcpFlow {
  readonly client: string;
  readonly server: string;
  readonly fromClient: readonly Chunk[];
  readonly fromServer: readonly Chunk[];
  /** Both sides have sent a FIN, or one a reset. */
  readonly isOver: boolean;
}

/** Sorts segments into connections and puts the bytes of each direction in order. */
export function assembleTcpFlows(segments: Iterable<TcpSegment>): TcpFlow[] {
  const flows: Flow[] = [];
  const current = new Map<string, Flow>();
  for (const segment of segments) {
    const key = [segment.source, segment.destination].sort().join(' ');
    let flow = current.get(key);
    if (flow === undefined || flow.isReopenedBy(segment)) {
      // A capture can begin in the middle of a connection: without its SYN the direction's start is unknown.
      if (!segment.syn) continue;
      flow = new Flow(segment.source, segment.destination);
      flows.push(flow);
      current.set(key, flow);
    }
    flow.add(segment);
  }
  return flows.map((flow) => flow.finish());
}

class Flow {
  readonly #client: string;
  readonly #server: string;
  readonly #fromClient = new Direction();
  readonly #fromServer = new Direction();
  #reset = false;

  constructor(client: string, server: string) {
    this.#client = client;
    this.#server = server;
  }

  get isOver(): boolean {
    return this.#reset || (this.#fromClient.isFinished && this.#fromServer.isFinished);
  }

  /** A SYN with another sequence number on a pair of ports that has been in use before. */
  isReopenedBy(segment: TcpSegment): boolean {
    return segment.syn && this.isOver && !this.#directionOf(segment).startsWith(segment);
  }

  add(segment: TcpSegment): void {
    if (segment.rst) this.#reset = true;
    this.#directionOf(segment).add(segment);
  }

  finish(): TcpFlow {
    return {
      client: this.#client,
      server: this.#server,
      fromClient: this.#fromClient.chunks,
      fromServer: this.#fromServer.chunks,
      isOver: this.isOver,
    };
  }

  #directionOf(segment: TcpSegment): Direction {
    return segment.source === this.#client ? this.#fromClient : this.#fromServer;
  }
}

class Direction {
  readonly chunks: Chunk[] = [];
  /** Offsets count from the byte behind the SYN, so that the sequence number's wrap is out of the way. */
  #start: number | null = null;
  #next = 0;
  #finish: number | null = null;
  #early: { offset: number; bytes: Buffer }[] = [];

  get isFinished(): boolean {
    return this.#finish !== null && this.#next >= this.#finish;
  }

  startsWith(segment: TcpSegment): boolean {
    return this.#start === (segment.sequence + 1) >>> 0;
  }

  add(segment: TcpSegment): void {
    if (segment.syn) this.#start ??= (segment.sequence + 1) >>> 0;
    if (this.#start === null || segment.rst) return;
    // As a signed distance from what is due: a retransmission is behind it, an early segment ahead.
    const due = (this.#start + this.#next) >>> 0;
    const offset = this.#next + ((segment.sequence + (segment.syn ? 1 : 0) - due) | 0);
    if (segment.fin) this.#finish = offset + segment.payload.length;
    if (segment.payload.length > 0) this.#early.push({ offset, bytes: segment.payload });
    this.#deliver(segment.at);
  }

  #deliver(at: number): void {
    for (;;) {
      const found = this.#early.find(({ offset }) => offset <= this.#next);
      if (found === undefined) return;
      this.#early = this.#early.filter((segment) => segment !== found);
      const bytes = found.bytes.subarray(this.#next - found.offset);
      if (bytes.length === 0) continue;
      this.chunks.push({ at, bytes });
      this.#next += bytes.length;
    }
  }
}
