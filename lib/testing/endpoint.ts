import type { NativeAddress, NativeConnectionParameters } from '../binding/cm.js';
import type { StandInQueuePair } from './queues.js';

/** `rdma_event_channel`: nothing but what keeps the process alive. */
export class StandInChannel {
  readonly #timer = setInterval(() => {}, 0x7fff_ffff);

  reference(alive: boolean): void {
    if (alive) this.#timer.ref();
    else this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** `rdma_cm_id` */
export class CmEndpoint {
  readonly handle: number;
  readonly channel: number;
  local: NativeAddress = { address: '0.0.0.0', port: 0 };
  remote: NativeAddress = { address: '0.0.0.0', port: 0 };
  /** It has a device: an address was resolved or bound. */
  bound = false;
  listening = false;
  /** The listener of a request. */
  listener: CmEndpoint | undefined;
  peer: CmEndpoint | undefined;
  queuePair: StandInQueuePair | undefined;
  /** What it asked for, or granted. */
  parameters: NativeConnectionParameters | undefined;
  state: 'idle' | 'requested' | 'connecting' | 'connected' | 'ended' = 'idle';

  constructor(handle: number, channel: number) {
    this.handle = handle;
    this.channel = channel;
  }

  get connected(): boolean {
    return this.state === 'connected';
  }
}
