import { useBinding } from '../binding/addon.js';
import { invalidArgumentType, requireOptions } from '../errors.js';
import type { DatagramParameters } from './event.js';
import type { NativeId } from './native-id.js';
import { checkNumericAddress } from './parameters.js';
import type { PendingCalls } from './pending-calls.js';

/** How a group is joined. */
export interface MulticastOptions {
  /** Send to the group and receive nothing of it: `RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER`; default false. */
  sendOnly?: boolean;
}

const EADDRNOTAVAIL = 99;

/** A multicast group that an id has joined: what a send to it needs, and the way out. */
export class MulticastGroup implements AsyncDisposable, DatagramParameters {
  /** The address that it was joined by. */
  readonly address: string;
  readonly addressVector: DatagramParameters['addressVector'];
  /** 0xffffff: the group itself. */
  readonly queuePairNumber: number;
  readonly qkey: number;
  readonly #leave: () => Promise<void>;
  #left: Promise<void> | undefined;

  /** @internal `CmId.joinMulticast()` makes it. */
  constructor(address: string, datagram: DatagramParameters, leave: () => Promise<void>) {
    this.address = address;
    this.addressVector = datagram.addressVector;
    this.queuePairNumber = datagram.queuePairNumber;
    this.qkey = datagram.qkey;
    this.#leave = leave;
  }

  /**
   * `rdma_leave_multicast(3)`; the id's queue pair receives nothing of the group any more. Closing the id, or its queue
   * pair, leaves all its groups: `EADDRNOTAVAIL` from then on.
   */
  leave(): Promise<void> {
    this.#left ??= this.#leave();
    return this.#left;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }
}

/** The groups of one id. */
export class Memberships {
  readonly #id: NativeId;
  readonly #calls: PendingCalls;
  readonly #addresses = new Map<number, string>();
  #last = 0;

  constructor(id: NativeId, calls: PendingCalls) {
    this.#id = id;
    this.#calls = calls;
  }

  /** The address that the group of this number was joined by. */
  addressOf(group: number): string | undefined {
    return this.#addresses.get(group);
  }

  async join(address: string, options: MulticastOptions): Promise<MulticastGroup> {
    checkNumericAddress('group', address);
    requireOptions('options', options);
    const { sendOnly = false } = options;
    if (typeof sendOnly !== 'boolean') throw invalidArgumentType('options.sendOnly', 'a boolean', sendOnly);
    const { native } = useBinding();
    const number = ++this.#last;
    const expectation = {
      succeeds: 'multicast-join',
      fails: 'multicast-error',
      group: address,
      syscall: 'rdma_join_multicast',
      fallback: EADDRNOTAVAIL,
      destination: { address, port: 0 },
    } as const;
    this.#addresses.set(number, address);
    try {
      const { datagram } = await this.#calls.wait(expectation, () =>
        native.joinMulticast(this.#id.handle, number, address, sendOnly),
      );
      return new MulticastGroup(address, datagram!, () => this.#leave(number));
    } catch (error) {
      this.#addresses.delete(number);
      throw error;
    }
  }

  async #leave(number: number): Promise<void> {
    this.#addresses.delete(number);
    await useBinding().native.leaveMulticast(this.#id.handle, number);
  }
}
