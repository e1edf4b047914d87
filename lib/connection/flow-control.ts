/** What a message of a connection with credits is. The other numbers are for versions to come. */
export const messageKinds = { data: 0, credits: 1, goodbye: 2 } as const;

/** Bytes before each payload: kind (1), flags (1), credits (2, big-endian). */
export const prefixLength = 4;

/** The receives beyond `receiveDepth` of a connection with credits, which no message of a user's can take. */
export const controlReceives = 2;

const acknowledgesUpdate = 1;

/**
 * The credits of one connection, in both directions.
 *
 * A message of the user's takes a credit, that is one of the `receiveDepth` receives which its receiver has posted.
 * The receiver owes a credit for each receive that it has posted again, and returns what it owes with whatever it
 * sends next; when nothing is about to be sent, with a bare update. An update and the last message, goodbye, take no
 * credit: they have {@link controlReceives} receives of their own.
 *
 * **No overrun.** A side sends no second update before the peer has said, in a flag of the prefix, that it took the
 * first; it sends goodbye once. GO goes before all of them, and is taken before the passive side sends anything that
 * an update could be due for. So at most two of the three are under way at once, and there are two receives.
 *
 * **No deadlock.** An update is due as soon as the peer may have no more left than it is owed, so at the latest when
 * it has none. Could the one who owes wait for the acknowledgement of its update before? That one returned at least
 * one credit, and the peer, having none left now, has used it: for a message that it sent after it took the update,
 * so that message carries the acknowledgement, and arrives without any further credit.
 */
export class FlowControl {
  readonly #receiveDepth: number;
  #credits: number;
  /** Receives that were posted again and that the peer does not know of. */
  #owed = 0;
  /** Messages received whose receives are not posted again. */
  #held = 0;
  #updateUnderWay = false;
  #acknowledge = false;

  /** `credits`: the messages that the peer has receives for at the beginning. */
  constructor(receiveDepth: number, credits: number) {
    this.#receiveDepth = receiveDepth;
    this.#credits = credits;
  }

  /** Messages that may be sent before the peer returns a credit. */
  get credits(): number {
    return this.#credits;
  }

  /** Whether an update has to be sent now, if nothing else is. */
  get updateDue(): boolean {
    if (this.#owed === 0 || this.#updateUnderWay) return false;
    const left = this.#receiveDepth - this.#owed - this.#held;
    return this.#owed >= left;
  }

  /** The prefix of a message that is about to be sent, as a number of 32 bits. */
  prefix(kind: number): number {
    if (kind === messageKinds.data) this.#credits--;
    else if (kind === messageKinds.credits) this.#updateUnderWay = true;
    const flags = this.#acknowledge ? acknowledgesUpdate : 0;
    const prefix = ((kind << 24) | (flags << 16) | this.#owed) >>> 0;
    this.#acknowledge = false;
    this.#owed = 0;
    return prefix;
  }

  /** Takes the prefix of a received message; its kind. */
  receive(prefix: number): number {
    const kind = prefix >>> 24;
    this.#credits += prefix & 0xffff;
    if (((prefix >>> 16) & acknowledgesUpdate) !== 0) this.#updateUnderWay = false;
    if (kind === messageKinds.credits) this.#acknowledge = true;
    else if (kind === messageKinds.data) this.#held++;
    return kind;
  }

  /** The receive of a data message is posted again. */
  reposted(): void {
    this.#held--;
    this.#owed++;
  }
}
