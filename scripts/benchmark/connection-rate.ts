import { once } from 'node:events';
import { CmId, EventChannel } from 'node-rdma/cm';
import { CompletionQueue, Device, ProtectionDomain, type QueuePairOptions } from 'node-rdma/verbs';
import type { Program } from './program.js';

export interface ConnectionRateOptions {
  readonly connections: number;
}

/** The same as connection-rate.c has. */
const depth = 16;

class Hub {
  readonly channel = new EventChannel();
  #pd: ProtectionDomain | undefined;
  #options: QueuePairOptions | undefined;
  #device: Device | undefined;

  createQueuePair(id: CmId): void {
    if (this.#options === undefined) {
      this.#device = Device.open(id.device!.name);
      this.#pd = new ProtectionDomain(this.#device);
      const cq = new CompletionQueue(this.#device, { entries: 64 * depth });
      this.#options = {
        sendCompletionQueue: cq,
        receiveCompletionQueue: cq,
        maxSendRequests: depth,
        maxReceiveRequests: depth,
      };
    }
    id.createQueuePair(this.#pd!, this.#options);
  }

  async close(): Promise<void> {
    await this.channel.close();
    await this.#device?.close();
  }
}

/** Connections one after another, from `rdma_create_id()` to `rdma_destroy_id()`: connections per second. */
export const connectionRate: Program<ConnectionRateOptions> = {
  async serve({ address, options: { connections }, listening }) {
    const hub = new Hub();
    const listener = new CmId(hub.channel);
    listener.bind({ address, port: 0 });
    listener.listen();
    await new Promise<void>((resolve) => {
      let left = connections + 1;
      listener.on('connect-request', (_, id) => {
        hub.createQueuePair(id);
        id.on('disconnected', () => {
          id.disconnect();
          void id.close().then(() => {
            if (--left === 0) resolve();
          });
        });
        id.accept();
      });
      listening(listener.info.localPort);
    });
    await hub.close();
    return { value: 0 };
  },

  async connect({ address, port, options: { connections } }) {
    const hub = new Hub();
    const connectOnce = async () => {
      const id = new CmId(hub.channel);
      await id.resolveAddress({ address, port });
      await id.resolveRoute();
      hub.createQueuePair(id);
      const established = once(id, 'established');
      await id.connect();
      await established;
      id.disconnect();
      await id.close();
    };
    await connectOnce();
    const start = performance.now();
    for (let i = 0; i < connections; i++) await connectOnce();
    const seconds = (performance.now() - start) / 1000;
    await hub.close();
    return { value: connections / seconds };
  },
};
