import { EventChannel } from '../cm/index.js';

/** The event channel of this environment while anything uses it. */
let channel: EventChannel | undefined;
let users = 0;
let referenced = 0;

/**
 * One user's share of the environment's event channel. The channel keeps the process alive as long as one user that
 * is not unreferenced has it, and is closed when the last gives it back: nothing else here keeps a process alive.
 */
export class ChannelShare {
  readonly channel: EventChannel;
  #released = false;
  #referenced = true;

  /** Throws `ERR_RDMA_UNAVAILABLE` without the libraries, `ENODEV` or `ENOENT` without the kernel's rdma_ucm. */
  constructor() {
    channel ??= new EventChannel();
    this.channel = channel;
    users++;
    if (referenced++ === 0) channel.ref();
  }

  ref(): void {
    if (this.#referenced || this.#released) return;
    this.#referenced = true;
    if (referenced++ === 0) this.channel.ref();
  }

  unref(): void {
    if (!this.#referenced) return;
    this.#referenced = false;
    if (--referenced === 0 && !this.channel.closed) this.channel.unref();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.unref();
    if (--users > 0) return;
    channel = undefined;
    void this.channel.close();
  }
}
