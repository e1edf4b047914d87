import { once } from 'node:events';
import { type CmEvent, CmId } from 'node-rdma/cm';
import {
  CompletionQueue,
  Device,
  type MemoryRegion,
  ProtectionDomain,
  QueuePair,
  type QueuePairOptions,
} from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rxe, siw } from '../support/devices.js';
import { Endpoint, Listener, resolve } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });

/** A queue pair that was not made on its id, and goes with `id` through the states by hand. */
class OwnQueuePair {
  readonly #id: CmId;
  readonly device: Device;
  readonly queuePair: QueuePair;
  readonly memory: MemoryRegion;

  constructor(id: CmId, options: Partial<QueuePairOptions> = {}) {
    this.#id = id;
    this.device = Device.open(id.device!.name);
    const pd = new ProtectionDomain(this.device);
    const cq = new CompletionQueue(this.device, { entries: 64 });
    this.queuePair = new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq, ...options });
    this.memory = pd.allocateSync(4096, { access: ['remote-write', 'remote-read'] });
  }

  to(state: 'INIT' | 'RTR' | 'RTS'): void {
    this.queuePair.modify(this.#id.queuePairAttributes(state));
  }

  post(opcode: 'send' | 'receive', length: number) {
    return this.queuePair.submit({ opcode, sges: [{ region: this.memory, length }] });
  }

  async close(): Promise<void> {
    await this.#id.close();
    await this.device.close();
  }
}

let listener: Listener;

afterEach(() => listener.close());

describe('on rxe', () => {
  beforeEach(() => {
    listener = new Listener(rxe);
  });

  async function connectByHand(answer: (passive: OwnQueuePair, id: CmId) => Promise<void>) {
    const requested = listener.request();
    const id = await resolve(listener.channel, listener.destination);
    const active = new OwnQueuePair(id);
    active.to('INIT');
    const response = once(id, 'connect-response') as Promise<[CmEvent]>;
    await id.connect({ queuePair: active.queuePair, privateData: Buffer.from('ask') });
    const { id: requestId, event: request } = await requested;
    expect(request.qpNumber).toBe(active.queuePair.number);
    const passive = new OwnQueuePair(requestId);
    for (const state of ['INIT', 'RTR', 'RTS'] as const) passive.to(state);
    requestId.accept({ queuePair: passive.queuePair, privateData: Buffer.from('tell') });
    const [event] = await response;
    expect(event.qpNumber).toBe(passive.queuePair.number);
    expect(Buffer.from(event.privateData).toString('latin1', 0, 4)).toBe('tell');
    active.to('RTR');
    active.to('RTS');
    await answer(passive, requestId);
    return { id, active, passive, requestId };
  }

  test('a queue pair of the caller is connected by its id', async () => {
    const { id, active, passive, requestId } = await connectByHand(async () => {});
    const established = once(requestId, 'established');
    id.establish();
    await established;
    const received = [passive.post('receive', 64), active.post('receive', 64)];
    await active.post('send', 3);
    await passive.post('send', 4);
    expect(await Promise.all(received)).toMatchObject([{ byteLength: 3 }, { byteLength: 4 }]);
    const ended = once(requestId, 'disconnected');
    id.disconnect();
    await ended;
    await active.close();
    await passive.close();
  });

  test('the passive side can know of the connection before it is told', async () => {
    const { id, active, passive, requestId } = await connectByHand(async (_, passiveId) => {
      const established = once(passiveId, 'established');
      passiveId.notify('communication-established');
      await established;
    });
    expect(requestId.closed).toBe(false);
    id.establish();
    expect(() => id.establish()).toThrow(withCode('EINVAL'));
    await active.close();
    await passive.close();
  });

  test('there is nothing to establish before a response, or for a queue pair of the id', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    expect(() => active.id.establish()).toThrow(withCode('EINVAL'));
    await active.id.connect();
    expect(() => active.id.establish()).toThrow(withCode('EINVAL'));
    const { id } = await requested;
    expect(() => id.establish()).toThrow(withCode('EINVAL'));
    await active.close();
  });

  test('attributes are to be had when the connection knows them', async () => {
    const id = new CmId(listener.channel);
    expect(() => id.queuePairAttributes('INIT')).toThrow(withCode('EINVAL'));
    await id.resolveAddress(listener.destination);
    expect(id.queuePairAttributes('INIT')).toMatchObject({ state: 'INIT', portNumber: 1, pkeyIndex: 0 });
    await id.resolveRoute();
    const requested = listener.request();
    const active = new OwnQueuePair(id);
    await id.connect({ queuePair: active.queuePair });
    expect(() => id.queuePairAttributes('RTR')).toThrow(withCode('EINVAL'));
    const { id: request } = await requested;
    expect(request.queuePairAttributes('RTR')).toMatchObject({
      state: 'RTR',
      destQpNumber: active.queuePair.number,
      addressHandle: { portNumber: 1, gid: expect.any(Uint8Array) },
    });
    expect(request.queuePairAttributes('RTS')).toMatchObject({ state: 'RTS', sqPsn: expect.any(Number) });
    await active.close();
  });

  test('an id does not connect a queue pair of another id, or of another device, or a second one', async () => {
    const other = new Endpoint(await resolve(listener.channel, listener.destination));
    const id = await resolve(listener.channel, listener.destination);
    await expect(id.connect({ queuePair: other.queuePair })).rejects.toMatchObject({ code: 'EINVAL' });
    const foreign = new Listener(siw);
    const own = new OwnQueuePair(await resolve(foreign.channel, foreign.destination));
    await expect(id.connect({ queuePair: own.queuePair })).rejects.toMatchObject({ code: 'EINVAL' });
    const second = new OwnQueuePair(id);
    await expect(other.id.connect({ queuePair: second.queuePair })).rejects.toMatchObject({ code: 'EINVAL' });
    await second.queuePair.close();
    await expect(id.connect({ queuePair: second.queuePair })).rejects.toMatchObject({
      code: 'ERR_RDMA_CLOSED',
    });
    await other.close();
    await own.close();
    await second.close();
    await foreign.close();
  });
});

describe('on siw', () => {
  beforeEach(() => {
    listener = new Listener(siw);
  });

  test('the connection brings its queue pair up, and that of nobody else', async () => {
    const id = await resolve(listener.channel, listener.destination);
    const own = new OwnQueuePair(id);
    await expect(id.connect({ queuePair: own.queuePair })).rejects.toMatchObject({ code: 'ENOTSUP' });
    expect(() => id.establish()).toThrow(withCode('ENOTSUP'));
    expect(id.queuePairAttributes('INIT')).toMatchObject({ state: 'INIT', access: expect.any(Array) });
    await own.close();
  });

  test('nor on the side that is connected to', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    await active.id.connect();
    const { id } = await requested;
    const own = new OwnQueuePair(id);
    expect(() => id.accept({ queuePair: own.queuePair })).toThrow(withCode('ENOTSUP'));
    await own.close();
    await active.close();
  });
});
