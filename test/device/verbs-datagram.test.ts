import {
  AddressHandle,
  CompletionQueue,
  Device,
  grhLength,
  ProtectionDomain,
  QueuePair,
} from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rxe, siw } from '../support/devices.js';
import { HandEndpoint } from '../support/verbs/by-hand.js';

const qkey = 0x1111_1111;

describe('datagrams on rxe', () => {
  let one: HandEndpoint;
  let two: HandEndpoint;

  beforeEach(() => {
    [one, two] = [new HandEndpoint(rxe, { type: 'UD' }), new HandEndpoint(rxe, { type: 'UD' })];
    for (const { queuePair, whereabouts } of [one, two]) {
      queuePair.modify({ state: 'INIT', pkeyIndex: 0, portNumber: 1, qkey });
      queuePair.modify({ state: 'RTR' });
      queuePair.modify({ state: 'RTS', sqPsn: whereabouts.psn });
    }
  });

  afterEach(async () => {
    await one.close();
    await two.close();
  });

  const addressOf = (from: HandEndpoint, to: HandEndpoint) =>
    new AddressHandle(from.pd, { gid: to.whereabouts.gid, sgidIndex: from.sgidIndex });

  test('a datagram arrives behind 40 bytes, and its completion leads back to the sender', async () => {
    one.memory.bytes.set(Buffer.from('question'));
    const received = two.receive(grhLength + 100);
    await one.queuePair.submit({
      opcode: 'send',
      sges: [{ region: one.memory, length: 8 }],
      destination: { addressHandle: addressOf(one, two), queuePairNumber: two.queuePair.number, qkey },
    });
    const { byteLength, source } = await received;
    expect(byteLength).toBe(grhLength + 8);
    expect(Buffer.from(two.memory.bytes.subarray(grhLength, byteLength)).toString()).toBe('question');
    expect(source).toMatchObject({ queuePairNumber: one.queuePair.number, routed: true });

    const vector = AddressHandle.replyVector(two.pd, source!, two.memory.bytes);
    expect(vector.gid).toEqual(one.whereabouts.gid);
    expect(vector.sgidIndex).toBe(two.sgidIndex);
    const answered = one.receive(grhLength + 100, 1000);
    two.memory.bytes.set(Buffer.from('answer'), 2000);
    await two.queuePair.submit({
      opcode: 'sendWithImmediate',
      immediate: 42,
      sges: [{ region: two.memory, offset: 2000, length: 6 }],
      destination: {
        addressHandle: AddressHandle.toSource(two.pd, source!, two.memory.bytes),
        queuePairNumber: source!.queuePairNumber,
        qkey,
      },
    });
    expect(await answered).toMatchObject({
      byteLength: grhLength + 6,
      immediate: 42,
      source: { queuePairNumber: two.queuePair.number },
    });
  });

  test('what a datagram lacks is refused before the device sees it', async () => {
    const sges = [{ region: one.memory, length: 8 }];
    const refused = (code: string) => ({ status: 'POST_FAILED', cause: { code } });
    await expect(one.queuePair.submit({ opcode: 'send', sges })).rejects.toMatchObject(refused('EBADF'));
    const destination = {
      addressHandle: addressOf(two, one),
      queuePairNumber: two.queuePair.number,
      qkey,
    };
    // The address handle is of another domain.
    await expect(one.queuePair.submit({ opcode: 'send', sges, destination })).rejects.toMatchObject(
      refused('EINVAL'),
    );
    for (const opcode of ['write', 'read', 'fetchAndAdd', 'sendWithInvalidate', 'localInvalidate'] as const) {
      await expect(one.queuePair.submit({ opcode, sges })).rejects.toMatchObject(refused('ENOTSUP'));
    }
    const closed = addressOf(one, two);
    await closed.close();
    expect(() =>
      one.queuePair.post(
        { opcode: 'send', sges, destination: { ...destination, addressHandle: closed } },
        { complete() {} },
      ),
    ).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }));
  });

  test('a datagram with another Q_Key does not arrive', async () => {
    const sges = [{ region: one.memory, length: 8 }];
    const received = two.receive(200);
    const destination = { addressHandle: addressOf(one, two), queuePairNumber: two.queuePair.number };
    await one.queuePair.submit({ opcode: 'send', sges, destination: { ...destination, qkey: 1 } });
    one.memory.bytes.set(Buffer.from('the next'));
    await one.queuePair.submit({ opcode: 'send', sges, destination: { ...destination, qkey } });
    const { byteLength } = await received;
    expect(Buffer.from(two.memory.bytes.subarray(grhLength, byteLength)).toString()).toBe('the next');
  });

  test('a queue pair of a multicast group takes what is sent to the group, until it leaves', async () => {
    // ff0e::ffff:ef01:0203 is 239.1.2.3.
    const group = Uint8Array.from([0xff, 0x0e, ...new Uint8Array(8), 0xff, 0xff, 239, 1, 2, 3]);
    two.queuePair.attachMulticast(group);
    two.queuePair.detachMulticast(group);
    expect(() => two.queuePair.detachMulticast(group)).toThrow(
      expect.objectContaining({ syscall: 'ibv_detach_mcast' }),
    );
  });
});

describe('on siw, which has connections only,', () => {
  test('other queue pairs, address handles and multicast are ENOTSUP, and capabilities say so', async () => {
    const device = Device.open(siw.device);
    const pd = new ProtectionDomain(device);
    const cq = new CompletionQueue(device, { entries: 8 });
    const options = { sendCompletionQueue: cq, receiveCompletionQueue: cq };
    const unsupported = (syscall: string) => expect.objectContaining({ code: 'ENOTSUP', syscall });
    expect(device.capabilities).toMatchObject({
      queuePairTypes: ['RC'],
      addressHandles: false,
      multicastGroups: 0,
    });
    for (const type of ['UC', 'UD'] as const) {
      expect(() => new QueuePair(pd, { ...options, type })).toThrow(unsupported('ibv_create_qp'));
    }
    expect(() => new AddressHandle(pd, { gid: new Uint8Array(16) })).toThrow(unsupported('ibv_create_ah'));
    const source = {
      queuePairNumber: 1,
      sourceLid: 0,
      serviceLevel: 0,
      pathBits: 0,
      pkeyIndex: 0,
      routed: true,
    };
    expect(() => AddressHandle.replyVector(pd, source, new Uint8Array(40))).toThrow(
      unsupported('ibv_init_ah_from_wc'),
    );
    const queuePair = new QueuePair(pd, options);
    const group = new Uint8Array(16).fill(0xff);
    expect(() => queuePair.attachMulticast(group)).toThrow(unsupported('ibv_attach_mcast'));
    expect(() => queuePair.detachMulticast(group)).toThrow(unsupported('ibv_detach_mcast'));
    await device.close();
  });
});
