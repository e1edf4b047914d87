import { once } from 'node:events';
import type { CmId } from 'node-rdma/cm';
import {
  CompletionQueue,
  Device,
  type MemoryRegion,
  ProtectionDomain,
  type QueuePair,
  SharedReceiveQueue,
} from 'node-rdma/verbs';
import type { GuestDevice } from '../devices.js';
import { Endpoint, Listener, resolve } from './endpoint.js';

/** Several connections whose accepting side takes its receives from one queue. */
export class SharedReceiver {
  readonly device: Device;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly srq: SharedReceiveQueue;
  readonly memory: MemoryRegion;
  readonly queuePairs: QueuePair[] = [];
  readonly clients: Endpoint[] = [];
  readonly #ids: CmId[] = [];
  readonly #listener: Listener;

  constructor(guest: GuestDevice, maxRequests = 16) {
    this.device = Device.open(guest.device);
    this.pd = new ProtectionDomain(this.device);
    this.cq = new CompletionQueue(this.device, { entries: 256 });
    this.srq = new SharedReceiveQueue(this.pd, { maxRequests, maxSges: 2 });
    this.memory = this.pd.allocateSync(65536);
    this.#listener = new Listener(guest);
  }

  async connect(): Promise<{ client: Endpoint; queuePair: QueuePair }> {
    const accepted = this.#listener.request().then(async ({ id }) => {
      const queuePair = id.createQueuePair(this.pd, {
        sendCompletionQueue: this.cq,
        receiveCompletionQueue: this.cq,
        sharedReceiveQueue: this.srq,
      });
      const established = once(id, 'established');
      id.accept();
      await established;
      this.#ids.push(id);
      this.queuePairs.push(queuePair);
      return queuePair;
    });
    const client = new Endpoint(await resolve(this.#listener.channel, this.#listener.destination));
    const established = once(client.id, 'established');
    await client.id.connect();
    await established;
    this.clients.push(client);
    return { client, queuePair: await accepted };
  }

  /** Posts a receive of `length` bytes at `offset` of the memory. */
  receive(offset = 0, length = 64) {
    return this.srq.submit({ sges: [{ region: this.memory, offset, length }] });
  }

  async close(): Promise<void> {
    for (const client of this.clients) await client.close();
    for (const id of this.#ids) await id.close();
    await this.device.close();
    await this.#listener.close();
  }
}
