import { setImmediate as nextTurn } from 'node:timers/promises';
import { CmId, EventChannel } from 'node-rdma/cm';
import { CompletionChannel, CompletionQueue, Device, ProtectionDomain, QueuePair } from 'node-rdma/verbs';
import { describe, expect, test } from 'vitest';
import { useBinding } from '#lib/binding/addon.js';
import { runChild } from '../support/child.js';
import { devices, siw } from '../support/devices.js';
import { connectPair, Endpoint, Listener, resolve } from '../support/verbs/endpoint.js';

/** Native objects that this test made and that are still there. */
function countObjects(): () => Record<string, number> {
  const before = useBinding().native.objectCounts();
  return () => {
    const now = useBinding().native.objectCounts();
    return Object.fromEntries(
      Object.entries(now)
        // A cm_id's view of its device is left to the garbage collector.
        .filter(([kind, count]) => kind !== 'Device' && count !== before[kind])
        .map(([kind, count]) => [kind, count - before[kind]!]),
    );
  };
}

describe.each(devices)('on %s', (_, device) => {
  test('closing a device closes everything that was made on it', async () => {
    const left = countObjects();
    const opened = Device.open(device.device);
    const pd = new ProtectionDomain(opened);
    const cq = new CompletionQueue(opened, { entries: 16 });
    const region = pd.allocateSync(4096);
    const queuePair = new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq });
    await opened.close();
    for (const object of [opened, pd, cq, region, queuePair]) expect(object.closed).toBe(true);
    expect(left()).toEqual({});
  });

  test.each(['CompletionQueue', 'ProtectionDomain', 'CmId'] as const)(
    'closing the %s of a queue pair in use closes the queue pair first',
    async (parent) => {
      const left = countObjects();
      const pair = await connectPair(device);
      const { active } = pair;
      const received = active.receive().catch((error) => error.code);
      await { CompletionQueue: active.cq, ProtectionDomain: active.pd, CmId: active.id }[parent].close();
      expect(active.queuePair.closed).toBe(true);
      expect(await received).toBe('ERR_RDMA_WC_WR_FLUSH_ERR');
      await pair.close();
      expect(left()).toEqual({});
    },
  );

  test('every request has its completion before the close of its queue pair resolves', async () => {
    const pair = await connectPair(device);
    const { queuePair, memory } = pair.active;
    let completions = 0;
    const complete = () => completions++;
    for (let i = 0; i < 100; i++) {
      queuePair.post({ opcode: 'receive', sges: [{ region: memory, length: 64 }] }, { complete });
    }
    await queuePair.close();
    expect(completions).toBe(100);
    expect(memory.inFlight).toBe(0);
    await pair.close();
  });

  test('closing memory that is in use is EBUSY, and it stays open', async () => {
    const pair = await connectPair(device);
    const { memory, queuePair } = pair.active;
    const received = pair.active.receive().catch((error) => error.code);
    await nextTurn();
    expect(memory.inFlight).toBe(1);
    await expect(memory.close()).rejects.toMatchObject({ code: 'EBUSY', syscall: 'ibv_dereg_mr' });
    expect(memory.closed).toBe(false);
    await queuePair.close();
    expect(await received).toBe('ERR_RDMA_WC_WR_FLUSH_ERR');
    await memory.close();
    await pair.close();
  });

  test('every object is closed once, however often and in whatever order it is asked', async () => {
    const left = countObjects();
    const pair = await connectPair(device);
    const { active, passive } = pair;
    const objects = [active.cq, active.queuePair, active.device, active.id, active.pd, active.memory];
    await Promise.all([...objects, ...objects].map((object) => object.close()));
    await passive.device.close();
    await passive.id.close();
    await pair.close();
    expect(left()).toEqual({});
  });

  test('what is closed throws ERR_RDMA_CLOSED', async () => {
    const pair = await connectPair(device);
    const { active } = pair;
    await pair.close();
    const calls = {
      send: () => active.queuePair.post({ opcode: 'send' }, { complete: () => {} }),
      query: () => active.queuePair.query(),
      modify: () => active.queuePair.modify({ state: 6 }),
      inFlight: () => active.queuePair.inFlight,
      poll: () => active.cq.poll(),
      ref: () => active.cq.ref(),
      unref: () => active.cq.unref(),
      allocate: () => active.pd.allocateSync(1),
      regionInFlight: () => active.memory.inFlight,
      queryPort: () => active.device.queryPort(),
      queryGid: () => active.device.queryGid(1, 0),
      newPd: () => new ProtectionDomain(active.device),
      newChannel: () => new CompletionChannel(active.device),
      newCq: () => new CompletionQueue(active.device, { entries: 1 }),
      disconnect: () => active.id.disconnect(),
      listen: () => active.id.listen(),
      accept: () => active.id.accept(),
      reject: () => active.id.reject(),
      info: () => active.id.info,
      bind: () => active.id.bind({ address: device.address, port: 0 }),
      newId: () => new CmId(active.id.channel),
      channel: () => active.id.channel.unref(),
    };
    for (const [name, call] of Object.entries(calls)) {
      expect(() => call(), name).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }));
    }
    const promises = {
      connect: active.id.connect(),
      resolveRoute: active.id.resolveRoute(),
      allocate: active.pd.allocate(1),
      register: active.pd.register(new Uint8Array(8)),
    };
    for (const [name, promise] of Object.entries(promises)) {
      await expect(promise, name).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    }
  });

  test('memory that arrives after its domain was closed is let go', async () => {
    const left = countObjects();
    const opened = Device.open(device.device);
    const pd = new ProtectionDomain(opened);
    const closed = { code: 'ERR_RDMA_CLOSED' };
    await Promise.all([
      expect(pd.allocate(4 << 20)).rejects.toMatchObject(closed),
      expect(pd.register(new Uint8Array(4 << 20))).rejects.toMatchObject(closed),
      pd.close(),
    ]);
    await opened.close();
    expect(left()).toEqual({});
  });

  test('an id is closed in every state of a connection', async () => {
    const left = countObjects();
    const listener = new Listener(device);
    const fresh = new CmId(listener.channel);
    await fresh.close();

    const resolving = new CmId(listener.channel);
    const resolved = resolving.resolveAddress(listener.destination);
    await Promise.all([
      expect(resolved).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' }),
      resolving.close(),
    ]);

    const bound = await resolve(listener.channel, listener.destination);
    await bound.close();

    const unanswered = listener.request();
    const connecting = new Endpoint(await resolve(listener.channel, listener.destination));
    const connected = connecting.id.connect().catch(() => {});
    const { id } = await unanswered;
    // The request was never answered: closing it rejects, and on iWARP the other one waits for an answer.
    await Promise.all([connecting.close(), id.close()]);
    await connected;
    await listener.close();
    expect(left()).toEqual({});
  });

  test('closing an event channel settles what its ids were waiting for', async () => {
    const left = countObjects();
    const channel = new EventChannel();
    const id = new CmId(channel);
    const resolved = id.resolveAddress({ address: device.address, port: 1 });
    const closed = channel.close();
    await expect(resolved).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    await closed;
    expect(id.closed).toBe(true);
    expect(left()).toEqual({});
  });
});

test('objects that the garbage collector finds are closed with a warning each', async () => {
  const child = await runChild('test/lifecycle/children/abandoned-objects.js', [siw.device], ['--expose-gc']);
  expect(child.stderr).toBe('');
  expect(JSON.parse(child.stdout)).toEqual({
    warnings: [
      'A CompletionChannel was garbage-collected without close()',
      'A CompletionQueue was garbage-collected without close()',
      'A Device was garbage-collected without close()',
      'A MemoryRegion was garbage-collected without close()',
      'A ProtectionDomain was garbage-collected without close()',
      'A QueuePair was garbage-collected without close()',
    ],
    left: [],
  });
  expect(child.status).toBe(0);
});
