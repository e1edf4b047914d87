import { Device, MemoryWindow, ProtectionDomain } from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devices, rxe, siw } from '../support/devices.js';
import { type HandEndpoint, handPair } from '../support/verbs/by-hand.js';

describe('on rxe', () => {
  let one: HandEndpoint;
  let two: HandEndpoint;

  beforeEach(() => {
    [one, two] = handPair(rxe);
  });

  afterEach(async () => {
    await one.close();
    await two.close();
  });

  const bindTo = (end: HandEndpoint) => ({
    region: end.memory,
    offset: 4096,
    length: 100,
    access: ['remote-write', 'remote-read'] as const,
  });

  test.each([1, 2] as const)('the peer reaches a window of type %i once it is bound', async (type) => {
    const window = new MemoryWindow(two.pd, { type });
    const before = window.rkey;
    const remote = await window.bind(two.queuePair, bindTo(two));
    expect(remote).toMatchObject({ address: two.memory.address + 4096n, rkey: window.rkey, length: 100 });
    expect(window.rkey).not.toBe(before);
    one.memory.bytes.fill(3, 0, 100);
    await one.queuePair.submit({ opcode: 'write', sges: [{ region: one.memory, length: 100 }], remote });
    expect(two.memory.bytes.subarray(4096, 4196)).toEqual(one.memory.bytes.subarray(0, 100));
    // rxe checks that a request keeps within the region, not within the window (rxe_resp.c, check_rkey()).
  });

  test('a window that was invalidated by its owner is closed, and can be bound again', async () => {
    const window = new MemoryWindow(two.pd);
    const first = await window.bind(two.queuePair, bindTo(two));
    await two.queuePair.submit({ opcode: 'localInvalidate', immediate: window.rkey });
    const second = await window.bind(two.queuePair, bindTo(two));
    const sges = [{ region: one.memory, length: 10 }];
    await one.queuePair.submit({ opcode: 'write', sges, remote: second });
    await expect(one.queuePair.submit({ opcode: 'write', sges, remote: first })).rejects.toMatchObject({
      status: 'REM_ACCESS_ERR',
    });
  });

  test('the peer invalidates a window with its message', async () => {
    const window = new MemoryWindow(two.pd);
    const remote = await window.bind(two.queuePair, bindTo(two));
    const received = two.receive();
    const sges = [{ region: one.memory, length: 10 }];
    await one.queuePair.submit({ opcode: 'sendWithInvalidate', immediate: remote.rkey, sges });
    expect(await received).toMatchObject({ byteLength: 10 });
    await expect(one.queuePair.submit({ opcode: 'write', sges, remote })).rejects.toMatchObject({
      status: 'REM_ACCESS_ERR',
    });
  });

  test('a region can not be closed while a window is bound to it', async () => {
    const window = new MemoryWindow(two.pd);
    await window.bind(two.queuePair, bindTo(two));
    await expect(two.memory.close()).rejects.toMatchObject({ code: 'EBUSY' });
    expect(() => two.memory.reregister([])).toThrow(expect.objectContaining({ code: 'EBUSY' }));
    await window.close();
    await two.memory.close();
  });

  test('a binding that the domain or the region does not allow is refused', async () => {
    const window = new MemoryWindow(two.pd);
    const plain = two.pd.allocateSync(4096, { access: ['remote-write'] });
    const access = ['remote-write'] as const;
    await expect(window.bind(two.queuePair, { region: plain, access })).rejects.toMatchObject({
      cause: { code: 'EACCES' },
    });
    await expect(window.bind(one.queuePair, { region: one.memory, access })).rejects.toMatchObject({
      cause: { code: 'EINVAL' },
    });
    const first = new MemoryWindow(two.pd, { type: 1 });
    await expect(first.bind(two.queuePair, { region: plain, access })).rejects.toMatchObject({
      code: 'EACCES',
      syscall: 'ibv_bind_mw',
    });
    // It may be bound all the same.
    await window.bind(two.queuePair, bindTo(two));
  });
});

test('siw has no memory windows, and says so beforehand', async () => {
  const device = Device.open(siw.device);
  const pd = new ProtectionDomain(device);
  expect(device.capabilities.memoryWindows).toBe(0);
  expect(() => new MemoryWindow(pd)).toThrow(
    expect.objectContaining({ code: 'ENOTSUP', syscall: 'ibv_alloc_mw' }),
  );
  await device.close();
});

test.each(devices)('re-registration is ENOTSUP on %s, and the region stays what it was', async (_, guest) => {
  const device = Device.open(guest.device);
  const region = new ProtectionDomain(device).allocateSync(4096, { access: ['remote-read'] });
  const { lkey, rkey } = region;
  expect(() => region.reregister(['remote-write'])).toThrow(
    expect.objectContaining({ code: 'ENOTSUP', syscall: 'ibv_rereg_mr' }),
  );
  expect(region).toMatchObject({ lkey, rkey, access: ['remote-read'] });
  await device.close();
});
