import { opcodes, rings, type WorkCompletion } from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devices } from '../support/devices.js';
import { connectPair, type Endpoint, type Pair } from '../support/verbs/endpoint.js';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe.each(devices)('on %s', (_, device) => {
  let pair: Pair;
  let active: Endpoint;
  let passive: Endpoint;

  beforeEach(async () => {
    const options = {
      queuePair: {
        maxSendRequests: 16,
        maxReceiveRequests: 64,
        maxSendSges: 4,
        maxReceiveSges: 4,
        maxInlineData: 32,
      },
    };
    pair = await connectPair(device, { active: options, passive: options });
    ({ active, passive } = pair);
    active.memory.bytes.forEach((__, i) => {
      active.memory.bytes[i] = i * 7;
    });
  });

  afterEach(() => pair.close());

  test('a message arrives as it was sent', async () => {
    const received = passive.receive(4096);
    await active.send(3000, 17);
    expect(await received).toEqual({ byteLength: 3000 });
    expect(passive.memory.bytes.subarray(0, 3000)).toEqual(active.memory.bytes.subarray(17, 3017));
  });

  test('messages of no bytes are messages', async () => {
    const received = [passive.receive(0), passive.receive(64)];
    await active.queuePair.submit({ opcode: 'send' });
    await active.send(0);
    expect(await Promise.all(received)).toEqual([{ byteLength: 0 }, { byteLength: 0 }]);
  });

  test('a gather list is sent as one message and scattered into the list of the receive', async () => {
    const { memory: from } = active;
    const { memory: to } = passive;
    const received = passive.queuePair.submit({
      opcode: 'receive',
      sges: [
        { region: to, offset: 1000, length: 3 },
        { region: to, offset: 2000, length: 100 },
      ],
    });
    await active.queuePair.submit({
      opcode: 'send',
      sges: [
        { region: from, offset: 10, length: 5 },
        { region: from, offset: 500, length: 1 },
        { region: from, offset: 0, length: 0 },
        { region: from, offset: 90, length: 4 },
      ],
    });
    expect(await received).toEqual({ byteLength: 10 });
    const sent = [
      ...from.bytes.subarray(10, 15),
      ...from.bytes.subarray(500, 501),
      ...from.bytes.subarray(90, 94),
    ];
    expect([...to.bytes.subarray(1000, 1003), ...to.bytes.subarray(2000, 2007)]).toEqual(sent);
  });

  test('a Write places bytes without a completion at the peer, and a Read brings them back', async () => {
    const { memory } = active;
    const sges = [{ region: memory, offset: 100, length: 1000 }];
    await active.queuePair.submit({ opcode: 'write', sges, remote: passive.memory.remote(5000) });
    await active.queuePair.submit({
      opcode: 'read',
      sges: [{ region: memory, offset: 30_000, length: 1000 }],
      remote: passive.memory.remote(5000),
    });
    expect(passive.memory.bytes.subarray(5000, 6000)).toEqual(memory.bytes.subarray(100, 1100));
    expect(memory.bytes.subarray(30_000, 31_000)).toEqual(memory.bytes.subarray(100, 1100));
    expect(passive.queuePair.inFlight).toEqual({ send: 0, receive: 0 });
  });

  test('inline data is taken when the request is posted, up to the limit', async () => {
    const limit = active.queuePair.limits.maxInlineData;
    expect(limit).toBeGreaterThanOrEqual(32);
    const received = passive.receive(4096);
    const sges = [{ region: active.memory, offset: 0, length: limit }];
    const expected = active.memory.bytes.slice(0, limit);
    const sent = active.queuePair.submit({ opcode: 'send', inline: true, sges });
    rings().requests.flush();
    active.memory.bytes.fill(0, 0, limit);
    await sent;
    expect(await received).toEqual({ byteLength: limit });
    expect(passive.memory.bytes.subarray(0, limit)).toEqual(expected);
    await expect(
      active.queuePair.submit({
        opcode: 'send',
        inline: true,
        sges: [{ region: active.memory, offset: 0, length: limit + 1 }],
      }),
    ).rejects.toMatchObject({ status: 'POST_FAILED', cause: { code: 'EINVAL' } });
  });

  test('messages arrive in the order in which they were sent', async () => {
    const order: number[] = [];
    const rounds = 10;
    for (let round = 0; round < rounds; round++) {
      const received = Array.from({ length: 16 }, (__, i) =>
        passive.receive(8, i * 8).then(() => order.push(passive.memory.bytes[i * 8]!)),
      );
      const sent = Array.from({ length: 16 }, (__, i) => {
        active.memory.bytes[i] = round * 16 + i;
        return active.send(1, i);
      });
      await Promise.all([...sent, ...received]);
    }
    expect(order).toEqual(Array.from({ length: rounds * 16 }, (__, i) => i));
  });

  test('a queue that is full gives the request too many back and carries the others out', async () => {
    const room = active.queuePair.limits.maxSendWr;
    const sges = [{ region: active.memory, length: 64 }];
    const write = () => active.queuePair.submit({ opcode: 'write', sges, remote: passive.memory.remote() });
    const results = await Promise.allSettled(Array.from({ length: room + 3 }, write));
    expect(results.slice(0, room).filter(({ status }) => status === 'rejected')).toEqual([]);
    for (const result of results.slice(room)) {
      expect(result).toMatchObject({ reason: { status: 'POST_FAILED', cause: { code: 'ENOMEM' } } });
    }
    await write();
  });

  test('unsignaled requests do not wedge the queue', async () => {
    const { queuePair, memory } = active;
    const room = queuePair.limits.maxSendWr;
    let posted = 0;
    while (posted < 5 * room) {
      while (queuePair.inFlight.send < room && posted < 5 * room) {
        writeUnsignaled(active, passive);
        rings().requests.flush();
        posted++;
      }
      await nextTurn();
    }
    const sges = [{ region: memory, length: 64 }];
    while (queuePair.inFlight.send === room) await nextTurn();
    await queuePair.submit({ opcode: 'write', sges, remote: passive.memory.remote() });
    expect(queuePair.inFlight.send).toBe(0);
    expect(memory.inFlight).toBe(0);
  });

  test('immediate data arrives with the message, or is refused before a device that has none sees it', async () => {
    const request = {
      opcode: 'sendWithImmediate' as const,
      immediate: 0xfedc_ba98,
      sges: [{ region: active.memory, length: 5 }],
    };
    const received = passive.receive(64);
    if (device.iwarp) {
      await expect(active.queuePair.submit(request)).rejects.toMatchObject({
        status: 'POST_FAILED',
        opcode: 'sendWithImmediate',
        cause: { code: 'ENOTSUP' },
      });
      await active.send(16);
      expect(await received).toEqual({ byteLength: 16 });
    } else {
      await active.queuePair.submit(request);
      expect(await received).toEqual({ byteLength: 5, immediate: 0xfedc_ba98 });
    }
  });

  test('binding no memory window is refused', async () => {
    await expect(active.queuePair.submit({ opcode: 'bindMemoryWindow' })).rejects.toMatchObject({
      cause: { code: device.iwarp ? 'ENOTSUP' : 'EBADF' },
    });
  });

  test('a refused request does not overtake, or hold up, those around it', async () => {
    const received = [passive.receive(16), passive.receive(16, 64)];
    const ends: string[] = [];
    const note = (name: string) => () => ends.push(name);
    await Promise.all([
      active.send(16).then(note('first')),
      active.queuePair
        .submit({ opcode: 'send', inline: true, sges: [{ region: active.memory, length: 60_000 }] })
        .catch(note('refused')),
      active.send(16).then(note('second')),
      ...received,
    ]);
    expect(ends.filter((end) => end !== 'refused')).toEqual(['first', 'second']);
    expect(ends).toContain('refused');
  });

  test('memory of another protection domain is refused', async () => {
    await expect(
      active.queuePair.submit({ opcode: 'send', sges: [{ region: passive.memory, length: 4 }] }),
    ).rejects.toMatchObject({ status: 'POST_FAILED', cause: { code: 'EINVAL' } });
  });

  test('memory that is not a sink of Reads takes none on iWARP', async () => {
    const plain = active.pd.allocateSync(4096);
    const read = active.queuePair.submit({
      opcode: 'read',
      sges: [{ region: plain, length: 16 }],
      remote: passive.memory.remote(),
    });
    if (device.iwarp) {
      await expect(read).rejects.toMatchObject({ status: 'POST_FAILED', cause: { code: 'EACCES' } });
    } else {
      expect(await read).toEqual({ byteLength: 16 });
    }
  });
});

function writeUnsignaled({ queuePair, memory }: Endpoint, to: Endpoint): void {
  const { requests, slots } = rings();
  const unexpected = (completion: WorkCompletion) => {
    throw completion.error();
  };
  const slot = slots.acquire({ complete: unexpected });
  const remote = to.memory.remote();
  requests.submit(
    queuePair.handle,
    opcodes.write,
    0,
    slot,
    slots.generation(slot),
    memory.handle,
    0,
    64,
    remote.addressLow,
    remote.addressHigh,
    remote.rkey,
  );
  // No completion will come for it.
  slots.release(slot, slots.generation(slot));
}
