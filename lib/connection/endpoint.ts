import type { CmId } from '../cm/index.js';
import { RdmaError } from '../errors.js';
import type { Transport } from '../peer-to-peer/header.js';
import type { QueuePair } from '../verbs/index.js';
import { type CompletionShare, DeviceContext } from './device-context.js';
import { Domain } from './domain.js';
import { controlReceives, prefixLength } from './flow-control.js';
import type { ConnectionSettings } from './options.js';
import { ReceiveBuffers } from './receive-buffers.js';
import { controlSends } from './send-queue.js';

/** `IBV_QPS_ERR`: everything that is posted is flushed. */
const errorState = 6;

/** A message that a connection with flow control may send has two parts: prefix and borrowed data. */
const sendSges = 2;

/** What one connection has of a device: queue pair, receives, its part of a completion queue and of a domain. */
export class Endpoint {
  readonly context: DeviceContext;
  readonly domain: Domain;
  readonly queuePair: QueuePair;
  readonly receives: ReceiveBuffers;
  /** The depths for RDMA Reads, as far as the device has them. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly #completions: CompletionShare;
  readonly #ownDomain: boolean;
  #disposed: Promise<void> | undefined;

  /**
   * Makes it for an id that has a device, and posts the receives. `negotiating`: messages may have a prefix, and
   * there may be some that take no credit.
   */
  static async create(id: CmId, settings: ConnectionSettings, negotiating: boolean): Promise<Endpoint> {
    const { device } = id;
    if (device === undefined) {
      throw new RdmaError('ENODEV', 'The address belongs to no RDMA device: see `rdma link`');
    }
    const undo: (() => unknown)[] = [];
    try {
      const context = DeviceContext.acquire(device.name);
      undo.push(() => context.release());
      const { sendDepth, receiveDepth, maxMessageSize, protectionDomain } = settings;
      const domain = openDomain(context, protectionDomain);
      if (protectionDomain === 'own') undo.push(() => domain.pd.close());
      const completions = context.reserve(sendDepth + controlSends + receiveDepth + controlReceives);
      undo.push(() => completions.release());
      const receives = await ReceiveBuffers.create(
        domain.pd,
        receiveDepth + (negotiating ? controlReceives : 0),
        maxMessageSize + (negotiating ? prefixLength : 0),
      );
      undo.push(() => receives.region.close());
      if (id.closed) throw new RdmaError('ERR_RDMA_CLOSED', 'The connection is closed');
      const queuePair = id.createQueuePair(domain.pd, {
        sendCompletionQueue: completions.queue,
        receiveCompletionQueue: completions.queue,
        maxSendRequests: sendDepth + controlSends,
        maxReceiveRequests: receiveDepth + controlReceives,
        maxSendSges: sendSges,
      });
      return new Endpoint(context, domain, queuePair, receives, completions, settings);
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  private constructor(
    context: DeviceContext,
    domain: Domain,
    queuePair: QueuePair,
    receives: ReceiveBuffers,
    completions: CompletionShare,
    settings: ConnectionSettings,
  ) {
    this.context = context;
    this.domain = domain;
    this.queuePair = queuePair;
    this.receives = receives;
    this.#completions = completions;
    this.#ownDomain = settings.protectionDomain === 'own';
    const { maxQpRdAtom, maxQpInitRdAtom } = context.device.attributes;
    // 0 would make the Read of the handshake hang (RoCE) or wedge the send queue (siw): at least 1 is asked for.
    this.responderResources = Math.max(1, Math.min(settings.responderResources, maxQpRdAtom));
    this.initiatorDepth = Math.max(1, Math.min(settings.initiatorDepth, maxQpInitRdAtom));
  }

  get iwarp(): boolean {
    return this.context.device.transport === 'iwarp';
  }

  get transport(): Transport {
    return this.iwarp ? 'iwarp' : 'infiniband';
  }

  /** Delivers what has completed. Not within the callback of a completion. */
  drain(): void {
    const { queue } = this.#completions;
    if (queue.closed) return;
    // Other connections' traffic on the queue could go on for ever; what is in it now is one queue's length at most.
    for (let left = queue.entries; left > 0; ) {
      const count = queue.poll();
      if (count === 0) return;
      left -= count;
    }
  }

  /** Stops the device's work for this connection. */
  quiesce(): void {
    try {
      this.queuePair.modify({ state: errorState });
    } catch {
      // It is in that state already: the connection was lost.
    }
  }

  /** Takes everything back, after the last completion has come. `beforeMemory` runs before the receives' memory goes. */
  dispose(beforeMemory: () => Promise<void> = async () => {}): Promise<void> {
    this.#disposed ??= this.#dispose(beforeMemory);
    return this.#disposed;
  }

  async #dispose(beforeMemory: () => Promise<void>): Promise<void> {
    await this.queuePair.close();
    this.#completions.release();
    await beforeMemory();
    await this.receives.region.close();
    if (this.#ownDomain) await this.domain.pd.close();
    await this.context.release();
  }
}

function openDomain(context: DeviceContext, domain: ConnectionSettings['protectionDomain']): Domain {
  if (domain === 'shared') return context.sharedDomain;
  if (domain === 'own') return Domain.open(context.device);
  return context.givenDomain(domain);
}
