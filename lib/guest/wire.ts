import { performAction } from './action.js';
import { shapeWire, unshapeWire, type WireEnd, type WireShape } from './network-plan.js';

/** What leaves through one end of a wire. */
export class Egress {
  readonly #end: WireEnd;
  #shape: WireShape = {};
  #cut = false;
  #shaped = false;
  #handle = 0;

  constructor(end: WireEnd) {
    this.#end = end;
  }

  async shape(shape: WireShape): Promise<void> {
    this.#shape = shape;
    await this.#apply();
  }

  async cut(cut: boolean): Promise<void> {
    this.#cut = cut;
    await this.#apply();
  }

  async #apply(): Promise<void> {
    const shape = this.#cut ? { loss: 100 } : this.#shape;
    const shaped = Object.keys(shape).length > 0;
    if (shaped) await performAction(shapeWire(this.#end, shape, ++this.#handle));
    else if (this.#shaped) await performAction(unshapeWire(this.#end));
    this.#shaped = shaped;
  }
}

/** The wire of one host. Its shape is that of what the host sends; a partition cuts both directions. */
export class Wire {
  readonly #near: Egress;
  readonly #far: Egress;

  constructor(near: Egress, far: Egress) {
    this.#near = near;
    this.#far = far;
  }

  /** Takes the place of the shape before; `{}` leaves the wire plain. Packets that wait in the old one are lost. */
  shape(shape: WireShape): Promise<void> {
    return this.#near.shape(shape);
  }

  /** Everything is lost, in both directions, while the link stays up: nobody is told. */
  async partition(): Promise<void> {
    await this.#near.cut(true);
    await this.#far.cut(true);
  }

  /** Ends a partition: the wire has its shape again. */
  async heal(): Promise<void> {
    await this.#far.cut(false);
    await this.#near.cut(false);
  }
}
