import { Transform, type TransformCallback } from 'node:stream';

/**
 * Passes bytes on until it meets `marker` and takes what follows, a line, for itself. Bytes that cannot be the beginning
 * of the marker are passed on at once.
 */
export class StreamEnd extends Transform {
  /** The line behind the marker, or undefined if the stream ended without one. */
  readonly trailer: Promise<string | undefined>;
  readonly #marker: Buffer;
  readonly #settle: (trailer: string | undefined) => void;
  #held: Buffer = Buffer.alloc(0);
  #line: string | undefined;

  constructor(marker: string) {
    super();
    this.#marker = Buffer.from(marker);
    let settle: (trailer: string | undefined) => void = () => {};
    this.trailer = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settle = settle;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#line !== undefined) this.#takeTrailer(chunk);
    else this.#passOn(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]));
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#settle(undefined);
    // What looked like the beginning of a marker was none.
    done(null, this.#held);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#settle(undefined);
    done(error);
  }

  #passOn(bytes: Buffer): void {
    const at = bytes.indexOf(this.#marker);
    const end = at < 0 ? bytes.length - this.#possibleBeginning(bytes) : at;
    if (end > 0) this.push(bytes.subarray(0, end));
    this.#held = at < 0 ? bytes.subarray(end) : Buffer.alloc(0);
    if (at >= 0) this.#takeTrailer(bytes.subarray(at + this.#marker.length));
  }

  #takeTrailer(bytes: Buffer): void {
    this.#line = `${this.#line ?? ''}${bytes.toString('latin1')}`;
    const newline = this.#line.indexOf('\n');
    if (newline >= 0) this.#settle(this.#line.slice(0, newline));
  }

  /** @returns how many of the last bytes could be the beginning of the marker. */
  #possibleBeginning(bytes: Buffer): number {
    const longest = Math.min(bytes.length, this.#marker.length - 1);
    for (let length = longest; length > 0; length--)
      if (bytes.subarray(bytes.length - length).equals(this.#marker.subarray(0, length))) return length;
    return 0;
  }
}
