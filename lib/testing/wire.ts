/** What joins the two ends of all connections of a stand-in: everything that one end does to the other passes here. */
export class StandInWire {
  /** Milliseconds that everything takes, each way. */
  delay = 0;
  #cut = false;
  #held: (() => void)[] = [];

  /** Does it at the other end: later, and in the order of the calls. */
  carry(arrive: () => void): void {
    const land = () => {
      if (this.#cut) this.#held.push(arrive);
      else arrive();
    };
    if (this.delay > 0) setTimeout(land, this.delay);
    else setImmediate(land);
  }

  /** Nothing arrives any more, and nobody is told. */
  cut(): void {
    this.#cut = true;
  }

  /** What was held arrives, in order. */
  heal(): void {
    this.#cut = false;
    const held = this.#held;
    this.#held = [];
    for (const arrive of held) arrive();
  }
}
