import { Condition } from './condition.js';
import { History } from './history.js';
import type { Fpdu, TimedFrame } from './mpa-stream.js';
import type { Wait } from './peer.js';
import { ProtocolViolation } from './protocol-violation.js';
import { describeSegment } from './segment.js';

/** What a wait may take if the test does not say: an emulated guest under load is slow. */
const defaultWithin = 10_000;

/** What a peer has received and not yet been asked for, and the waits for it. */
export class Inbox {
  readonly history = new History();
  readonly #changed = new Condition();
  readonly #fpdus: Fpdu[] = [];
  #frame: TimedFrame | null = null;
  #ended = false;
  #violation: ProtocolViolation | null = null;
  #reported = false;

  get isBroken(): boolean {
    return this.#violation !== null;
  }

  addFrame(frame: TimedFrame): void {
    this.#frame = frame;
    this.#changed.announce();
  }

  addFpdu(fpdu: Fpdu): void {
    this.#fpdus.push(fpdu);
    this.#changed.announce();
  }

  addViolation(violation: ProtocolViolation): void {
    this.history.add(`VIOLATION: ${violation.message}`);
    this.#violation = new ProtocolViolation(`${violation.message}\n${this.history}`);
    this.#changed.announce();
  }

  addEnd(how: string): void {
    if (!this.#ended) this.history.add(how);
    this.#ended = true;
    this.#changed.announce();
  }

  async frame(what: string, wait: Wait): Promise<TimedFrame> {
    return await this.#arrival(what, wait, () => this.#frame);
  }

  async fpdu(what: string, wait: Wait): Promise<Fpdu> {
    return await this.#arrival(what, wait, () => this.#fpdus.shift() ?? null);
  }

  async silence(duration: number): Promise<void> {
    const due = `${duration} ms of silence were due`;
    await this.#changed.wait<void>(
      () => {
        this.#throwFpdu(due);
        if (this.#ended) throw this.failure(`${due}, but the connection has ended`);
        return null;
      },
      duration,
      (resolve) => resolve(),
    );
  }

  async end({ within = defaultWithin }: Wait): Promise<void> {
    await this.#changed.wait<true>(
      () => {
        this.#throwFpdu('the end was due');
        return this.#ended || null;
      },
      within,
      (_, reject) => reject(this.failure(`the end was due within ${within} ms`)),
    );
  }

  throwUnreported(): void {
    if (!this.#reported) this.#throwViolation();
  }

  failure(message: string): Error {
    return new Error(`${message}\n${this.history}`);
  }

  /** What came in order before a violation, or before the end, is still delivered. */
  async #arrival<T>(what: string, { within = defaultWithin }: Wait, look: () => T | null): Promise<T> {
    return await this.#changed.wait<T>(
      () => {
        const found = look();
        if (found !== null) return found;
        this.#throwViolation();
        if (this.#ended) throw this.failure(`${what} was due, but the connection has ended`);
        return null;
      },
      within,
      (_, reject) => reject(this.failure(`${what} was due within ${within} ms`)),
    );
  }

  #throwFpdu(due: string): void {
    this.#throwViolation();
    const fpdu = this.#fpdus[0];
    if (fpdu !== undefined) throw this.failure(`${due}, but there is ${describeSegment(fpdu)}`);
  }

  #throwViolation(): void {
    if (this.#violation === null) return;
    this.#reported = true;
    throw this.#violation;
  }
}
