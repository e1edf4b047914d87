import { RdmaError } from '../errors.js';
import { CompletionChannel, CompletionQueue, Device, type ProtectionDomain } from '../verbs/index.js';
import { Domain } from './domain.js';

/** Entries of a shared completion queue: with the default depths, 20 connections. */
const queueEntries = 4096;

interface SharedQueue {
  queue: CompletionQueue;
  free: number;
  connections: number;
}

/** A connection's part of a completion queue. */
export interface CompletionShare {
  readonly queue: CompletionQueue;
  /** Only once no completion of the connection can come any more. */
  release(): void;
}

const contexts = new Map<string, DeviceContext>();

/** The domains that were given by the user, which stay the user's to close, with what is shared in them. */
const givenDomains = new WeakMap<ProtectionDomain, Domain>();

/**
 * What the connections of one environment share on one device: it is opened for the first of them and closed behind
 * the last, so that an idle process can exit.
 */
export class DeviceContext {
  readonly device: Device;
  readonly #channel: CompletionChannel;
  readonly #queues = new Set<SharedQueue>();
  #shared: Domain | undefined;
  #users = 0;

  static acquire(name: string): DeviceContext {
    let context = contexts.get(name);
    if (context === undefined) {
      context = new DeviceContext(name);
      contexts.set(name, context);
    }
    context.#users++;
    return context;
  }

  private constructor(name: string) {
    this.device = Device.open(name);
    this.#channel = new CompletionChannel(this.device);
  }

  /** Closes the device, and all that was made on it, behind the last user. */
  async release(): Promise<void> {
    if (--this.#users > 0) return;
    contexts.delete(this.device.name);
    await this.device.close();
  }

  /** The domain of all connections that ask for no other. */
  get sharedDomain(): Domain {
    this.#shared ??= Domain.open(this.device);
    return this.#shared;
  }

  /** Throws `ERR_RDMA_WRONG_DEVICE` for a protection domain of another device. */
  givenDomain(pd: ProtectionDomain): Domain {
    if (pd.device.name !== this.device.name) {
      throw new RdmaError(
        'ERR_RDMA_WRONG_DEVICE',
        `The protection domain is one of ${pd.device.name}, the connection is on ${this.device.name}`,
      );
    }
    let domain = givenDomains.get(pd);
    if (domain === undefined) {
      domain = new Domain(pd);
      givenDomains.set(pd, domain);
    }
    return domain;
  }

  /**
   * Reserves entries of a completion queue. One that is full is left alone and another opened, so that none can
   * overrun: that would take every queue pair on it along.
   */
  reserve(entries: number): CompletionShare {
    let shared = [...this.#queues].find(({ free }) => free >= entries);
    if (shared === undefined) {
      const queue = new CompletionQueue(this.device, {
        entries: Math.max(entries, Math.min(queueEntries, this.device.attributes.maxCqe)),
        channel: this.#channel,
      });
      // The event channel alone decides whether connections keep the process alive.
      queue.unref();
      shared = { queue, free: queue.entries, connections: 0 };
      this.#queues.add(shared);
    }
    const chosen = shared;
    chosen.free -= entries;
    chosen.connections++;
    return {
      queue: chosen.queue,
      release: () => {
        chosen.free += entries;
        if (--chosen.connections > 0 || this.#queues.size === 1) return;
        this.#queues.delete(chosen);
        void chosen.queue.close();
      },
    };
  }
}
