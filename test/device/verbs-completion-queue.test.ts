import { CompletionQueue, Device } from 'node-rdma/verbs';
import { describe, expect, test } from 'vitest';
import { devices, rxe, siw } from '../support/devices.js';
import { HandEndpoint, handPair } from '../support/verbs/by-hand.js';

const unsupported = (syscall: string) => expect.objectContaining({ code: 'ENOTSUP', syscall });

test('a queue of rxe is made longer and shorter, and loses nothing', async () => {
  const ends = handPair(rxe);
  const [one, two] = ends;
  expect(one.device.capabilities.resizeCompletionQueue).toBe(true);
  const received = Array.from({ length: 8 }, () => two.receive(16));
  const before = two.cq.entries;
  two.cq.resize(before * 4);
  expect(two.cq.entries).toBeGreaterThanOrEqual(before * 4);
  for (let i = 0; i < 8; i++) {
    await one.queuePair.submit({ opcode: 'send', sges: [{ region: one.memory, length: i }] });
  }
  two.cq.resize(16);
  expect(two.cq.entries).toBeLessThan(before);
  expect((await Promise.all(received)).map(({ byteLength }) => byteLength)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  await Promise.all(ends.map((end) => end.close()));
});

test.each(devices)(
  'a queue with fields that the provider does not have is ENOTSUP on %s',
  async (_, guest) => {
    const device = Device.open(guest.device);
    expect(device.capabilities.completionFields).toEqual([]);
    for (const field of ['timestamp', 'wallclock'] as const) {
      expect(() => new CompletionQueue(device, { entries: 16, fields: [field] })).toThrow(
        expect.objectContaining({ code: 'ENOTSUP' }),
      );
    }
    await device.close();
  },
);

test('an ordinary queue has no such fields', async () => {
  const ends = handPair(rxe);
  const [one, two] = ends;
  const received = two.receive(16);
  await one.queuePair.submit({ opcode: 'send' });
  expect(await received).toEqual({ byteLength: 0 });
  await Promise.all(ends.map((end) => end.close()));
});

describe.each(devices)('on %s', (_, guest) => {
  test('moderation is ENOTSUP, as its capabilities say', async () => {
    const device = Device.open(guest.device);
    const cq = new CompletionQueue(device, { entries: 16 });
    expect(device.capabilities.completionModeration).toBe(false);
    expect(() => cq.moderate(16, 10)).toThrow(unsupported('ibv_modify_cq'));
    await device.close();
  });
});

test('siw resizes no queue and extends none, and both go on', async () => {
  const device = Device.open(siw.device);
  const cq = new CompletionQueue(device, { entries: 16 });
  expect(device.capabilities).toMatchObject({ resizeCompletionQueue: false, completionFields: [] });
  expect(() => cq.resize(64)).toThrow(unsupported('ibv_resize_cq'));
  expect(() => new CompletionQueue(device, { entries: 16, fields: ['timestamp'] })).toThrow(
    unsupported('ibv_create_cq_ex'),
  );
  expect(cq.entries).toBeGreaterThanOrEqual(16);
  await device.close();
});

test('fields of a name that is none are refused', async () => {
  const end = new HandEndpoint(rxe);
  const fields = ['colour'] as unknown as ['timestamp'];
  expect(() => new CompletionQueue(end.device, { entries: 1, fields })).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
  );
  await end.close();
});
