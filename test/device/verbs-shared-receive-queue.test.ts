import { once } from 'node:events';
import { Device, ProtectionDomain, rings, SharedReceiveQueue, type WorkCompletion } from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devices } from '../support/devices.js';
import { SharedReceiver } from '../support/verbs/shared-receive.js';

describe.each(devices)('on %s', (_, guest) => {
  let receiver: SharedReceiver;

  beforeEach(() => {
    receiver = new SharedReceiver(guest);
  });

  afterEach(() => receiver.close());

  test('connections take their receives from one queue, and completions name the one that did', async () => {
    const connections = [await receiver.connect(), await receiver.connect(), await receiver.connect()];
    const order: number[] = [];
    const takers: number[] = [];
    const received = connections.map(
      (__, i) =>
        new Promise<void>((resolve) => {
          receiver.srq.post(
            { sges: [{ region: receiver.memory, offset: i * 64, length: 64 }] },
            {
              complete(completion: WorkCompletion) {
                takers.push(completion.queuePair);
                order.push(completion.byteLength);
                resolve();
              },
            },
          );
        }),
    );
    rings().requests.flush();
    expect(receiver.srq.inFlight).toBe(3);
    for (const [i, { client }] of connections.entries()) {
      client.memory.bytes.fill(i + 1, 0, 10 + i);
      await client.send(10 + i);
      await received[i];
      expect(receiver.memory.bytes[i * 64]).toBe(i + 1);
    }
    expect(order).toEqual([10, 11, 12]);
    expect(takers).toEqual(connections.map(({ queuePair }) => queuePair.completionKey));
    expect(receiver.srq.inFlight).toBe(0);
  });

  test('the queue is filled again and again while several connections empty it', async () => {
    const connections = [await receiver.connect(), await receiver.connect()];
    const room = receiver.srq.limits.maxRequests;
    let bytes = 0;
    for (let round = 0; round < 6; round++) {
      const received = Array.from({ length: room }, (__, i) => receiver.receive(i * 64));
      rings().requests.flush();
      const sent = received.map((__, i) => connections[i % 2]!.client.send(1 + (i % 8)));
      await Promise.all(sent);
      for (const { byteLength } of await Promise.all(received)) bytes += byteLength;
    }
    expect(bytes).toBe(6 * Array.from({ length: room }, (__, i) => 1 + (i % 8)).reduce((a, b) => a + b));
  });

  test('one receive too many is refused, and the others stay', async () => {
    const { client } = await receiver.connect();
    const room = receiver.srq.limits.maxRequests;
    const received = Array.from({ length: room }, () => receiver.receive());
    await expect(receiver.receive()).rejects.toMatchObject({
      status: 'POST_FAILED',
      cause: { code: 'ENOMEM' },
    });
    await client.send(3);
    expect(await Promise.race(received)).toEqual({ byteLength: 3 });
    const left = Promise.allSettled(received);
    await receiver.srq.close();
    const flushed = (await left).filter(({ status }) => status === 'rejected');
    expect(flushed).toHaveLength(room - 1);
    expect(flushed[0]).toMatchObject({ reason: { status: 'WR_FLUSH_ERR' } });
    expect(receiver.memory.inFlight).toBe(0);
  });

  test('what is not a receive, has too many elements or other memory is refused', async () => {
    const { client, queuePair } = await receiver.connect();
    const refused = (code: string) => ({ status: 'POST_FAILED', cause: { code } });
    const sge = { region: receiver.memory, length: 8 };
    await expect(receiver.srq.submit({ sges: [sge, sge, sge] })).rejects.toMatchObject(refused('EINVAL'));
    await expect(receiver.srq.submit({ sges: [{ region: client.memory, length: 8 }] })).rejects.toMatchObject(
      refused('EINVAL'),
    );
    // A queue pair with a shared queue has none of its own.
    await expect(queuePair.submit({ opcode: 'receive', sges: [sge] })).rejects.toMatchObject(
      refused('EINVAL'),
    );
  });

  test('the limit is reached once for each time that it was armed', async () => {
    const { client } = await receiver.connect();
    const received = Array.from({ length: 8 }, (__, i) => receiver.receive(i * 64));
    rings().requests.flush();
    let reached = 0;
    receiver.srq.events.on('srq-limit-reached', () => reached++);
    for (let armed = 0; armed < 2; armed++) {
      const event = once(receiver.srq.events, 'srq-limit-reached');
      receiver.srq.arm(armed === 0 ? 6 : 3);
      if (receiver.device.capabilities.querySharedReceiveQueue) {
        expect(receiver.srq.query()).toMatchObject({ limit: armed === 0 ? 6 : 3 });
      }
      for (let i = 0; i < 4; i++) {
        await client.send(1);
        await received[armed * 4 + i];
      }
      expect(await event).toEqual([{ name: 'srq-limit-reached', port: 0 }]);
    }
    expect(reached).toBe(2);
  });

  test('a closed queue pair leaves the receives to the others', async () => {
    const gone = await receiver.connect();
    const { client } = await receiver.connect();
    const received = [receiver.receive(), receiver.receive()];
    rings().requests.flush();
    await gone.client.id.close();
    await gone.queuePair.close();
    for (const each of received) {
      await client.send(5);
      expect(await each).toEqual({ byteLength: 5 });
    }
  });

  test('closing the domain closes the queue after the queue pairs that use it', async () => {
    const { queuePair } = await receiver.connect();
    const received = receiver.receive().catch((error) => error.code);
    await receiver.pd.close();
    expect([queuePair.closed, receiver.srq.closed]).toEqual([true, true]);
    expect(await received).toBe('ERR_RDMA_WC_WR_FLUSH_ERR');
  });
});

test.each(devices)('on %s the size of a queue is told, or it is ENOTSUP', async (_, guest) => {
  const device = Device.open(guest.device);
  const srq = new SharedReceiveQueue(new ProtectionDomain(device), { maxRequests: 10, maxSges: 3 });
  expect(srq.limits.maxRequests).toBeGreaterThanOrEqual(10);
  expect(srq.limits.maxSges).toBeGreaterThanOrEqual(3);
  if (device.capabilities.querySharedReceiveQueue) {
    const { maxRequests, maxSges, limit } = srq.query();
    expect(maxRequests).toBeGreaterThanOrEqual(srq.limits.maxRequests);
    expect(maxSges).toBeGreaterThanOrEqual(srq.limits.maxSges);
    expect(limit).toBe(0);
  } else {
    expect(() => srq.query()).toThrow(expect.objectContaining({ code: 'ENOTSUP', syscall: 'ibv_query_srq' }));
  }
  expect(() => srq.arm(srq.limits.maxRequests + 1)).toThrow(RangeError);
  await device.close();
});
