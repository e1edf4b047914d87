import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { rxe } from '../support/devices.js';
import { HandEndpoint, handPair, type Whereabouts } from '../support/verbs/by-hand.js';

async function swap(socket: Socket, own: Whereabouts): Promise<Whereabouts> {
  socket.write(JSON.stringify({ ...own, gid: [...own.gid] }));
  const [text] = (await once(socket, 'data')) as [Buffer];
  const peer = JSON.parse(String(text)) as Whereabouts;
  return { ...peer, gid: Uint8Array.from(peer.gid) };
}

test('two reliable queue pairs that have told each other their GIDs over TCP exchange messages', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as { port: number };
  const client = connect(address.port, '127.0.0.1');
  const [served] = (await once(server, 'connection')) as [Socket];
  const ends = [new HandEndpoint(rxe), new HandEndpoint(rxe)] as const;
  const [one, two] = ends;
  const peers = await Promise.all([swap(client, one.whereabouts), swap(served, two.whereabouts)]);
  ends.forEach((end, i) => {
    end.initialise();
    end.readyToReceive(peers[i]!);
    end.readyToSend();
  });
  one.memory.bytes.set(Buffer.from('by hand'));
  const received = two.receive();
  await one.queuePair.submit({ opcode: 'send', sges: [{ region: one.memory, length: 7 }] });
  expect(await received).toEqual({ byteLength: 7 });
  expect(String(Buffer.from(two.memory.bytes.subarray(0, 7)))).toBe('by hand');
  client.destroy();
  served.destroy();
  server.close();
  await Promise.all(ends.map((end) => end.close()));
});

test('a queue pair passes through its states, and tells what it was given', async () => {
  const [one, two] = [new HandEndpoint(rxe), new HandEndpoint(rxe)];
  const { queuePair } = one;
  const state = () => queuePair.query().state;
  expect(state()).toBe('RESET');
  one.initialise();
  expect(queuePair.query()).toMatchObject({
    state: 'INIT',
    pkeyIndex: 0,
    portNumber: 1,
    access: expect.arrayContaining(['remote-write', 'remote-read', 'remote-atomic']),
  });
  one.readyToReceive(two.whereabouts);
  expect(queuePair.query()).toMatchObject({
    state: 'RTR',
    pathMtu: 1024,
    destQpNumber: two.queuePair.number,
    rqPsn: two.whereabouts.psn,
    maxDestRdAtomic: 4,
    minRnrTimer: 12,
    addressHandle: { gid: two.whereabouts.gid, sgidIndex: one.sgidIndex, portNumber: 1 },
  });
  one.readyToSend();
  expect(queuePair.query()).toMatchObject({
    state: 'RTS',
    sqPsn: one.whereabouts.psn,
    timeout: 14,
    retryCount: 7,
    rnrRetry: 7,
    maxRdAtomic: 4,
  });
  // rxe has room for more than it said.
  expect(queuePair.query().maxSendWr).toBeGreaterThanOrEqual(queuePair.limits.maxSendWr);
  expect(queuePair.query().maxReceiveWr).toBeGreaterThanOrEqual(queuePair.limits.maxReceiveWr);
  queuePair.modify({ state: 'ERR' });
  expect(state()).toBe('ERR');
  queuePair.modify({ state: 'RESET' });
  expect(state()).toBe('RESET');
  await Promise.all([one.close(), two.close()]);
});

test('a transition that is none is EINVAL, and leaves the state as it was', async () => {
  const end = new HandEndpoint(rxe);
  const invalid = expect.objectContaining({ code: 'EINVAL', syscall: 'ibv_modify_qp' });
  expect(() => end.queuePair.modify({ state: 'RTS' })).toThrow(invalid);
  expect(() => end.queuePair.modify({ state: 'INIT' })).toThrow(invalid);
  expect(end.queuePair.query().state).toBe('RESET');
  await end.close();
});

test('what is posted before its state allows it is refused', async () => {
  const end = new HandEndpoint(rxe);
  const refusal = (code: string) => ({ status: 'POST_FAILED', cause: { code } });
  await expect(end.receive()).rejects.toMatchObject(refusal('EINVAL'));
  await expect(end.queuePair.submit({ opcode: 'send' })).rejects.toMatchObject(refusal('ENOTCONN'));
  end.initialise();
  const received = end.receive();
  await expect(end.queuePair.submit({ opcode: 'send' })).rejects.toMatchObject(refusal('ENOTCONN'));
  end.queuePair.modify({ state: 'ERR' });
  await expect(received).rejects.toMatchObject({ status: 'WR_FLUSH_ERR' });
  await end.close();
});

test('an unreliable connection sends and writes, and has neither Reads nor atomics', async () => {
  const ends = [new HandEndpoint(rxe, { type: 'UC' }), new HandEndpoint(rxe, { type: 'UC' })] as const;
  const [one, two] = ends;
  for (const [end, peer] of [
    [one, two],
    [two, one],
  ] as const) {
    end.queuePair.modify({ state: 'INIT', pkeyIndex: 0, portNumber: 1, access: ['remote-write'] });
    end.queuePair.modify({
      state: 'RTR',
      pathMtu: 1024,
      destQpNumber: peer.queuePair.number,
      rqPsn: peer.whereabouts.psn,
      addressHandle: { gid: peer.whereabouts.gid, sgidIndex: end.sgidIndex },
    });
    end.queuePair.modify({ state: 'RTS', sqPsn: end.whereabouts.psn });
  }
  const received = two.receive();
  const sges = [{ region: one.memory, length: 5 }];
  await one.queuePair.submit({ opcode: 'write', sges, remote: two.memory.remote(100) });
  await one.queuePair.submit({ opcode: 'sendWithImmediate', immediate: 9, sges });
  expect(await received).toEqual({ byteLength: 5, immediate: 9 });
  for (const opcode of ['read', 'fetchAndAdd'] as const) {
    await expect(one.queuePair.submit({ opcode, sges, remote: two.memory.remote() })).rejects.toMatchObject({
      cause: { code: 'ENOTSUP' },
    });
  }
  await Promise.all(ends.map((end) => end.close()));
});

test('atomics change the memory of the peer and bring back what was there', async () => {
  const ends = handPair(rxe);
  const [one, two] = ends;
  const target = new BigUint64Array(two.memory.bytes.buffer, 0, 1);
  const fetched = new BigUint64Array(one.memory.bytes.buffer, 64, 1);
  const sges = [{ region: one.memory, offset: 64, length: 8 }];
  const remote = two.memory.remote(0, 8);
  target[0] = 0xffff_ffff_ffff_fff0n;
  await one.queuePair.submit({ opcode: 'fetchAndAdd', sges, remote, compareAdd: 0x1_0000_0020n });
  expect([fetched[0], target[0]]).toEqual([0xffff_ffff_ffff_fff0n, 0x1_0000_0010n]);
  await one.queuePair.submit({ opcode: 'compareAndSwap', sges, remote, compareAdd: 1n, swap: 7n });
  expect([fetched[0], target[0]]).toEqual([0x1_0000_0010n, 0x1_0000_0010n]);
  await one.queuePair.submit({
    opcode: 'compareAndSwap',
    sges,
    remote,
    compareAdd: 0x1_0000_0010n,
    swap: 7n,
  });
  expect([fetched[0], target[0]]).toEqual([0x1_0000_0010n, 7n]);
  await expect(
    one.queuePair.submit({ opcode: 'fetchAndAdd', sges: [{ region: one.memory, length: 16 }], remote }),
  ).rejects.toMatchObject({ cause: { code: 'EINVAL' } });
  await Promise.all(ends.map((end) => end.close()));
});

test('a Write with immediate data places bytes and takes a receive for the data', async () => {
  const ends = handPair(rxe);
  const [one, two] = ends;
  one.memory.bytes.fill(0x5a, 0, 100);
  const received = two.receive(0);
  await one.queuePair.submit({
    opcode: 'writeWithImmediate',
    immediate: 0x8000_0001,
    sges: [{ region: one.memory, length: 100 }],
    remote: two.memory.remote(200),
  });
  expect(await received).toMatchObject({ immediate: 0x8000_0001 });
  expect(two.memory.bytes.subarray(200, 300)).toEqual(one.memory.bytes.subarray(0, 100));
  await Promise.all(ends.map((end) => end.close()));
});

test('a fenced Write does not overtake the Read before it', async () => {
  const ends = handPair(rxe);
  const [one, two] = ends;
  two.memory.bytes.fill(1, 0, 32768);
  one.memory.bytes.fill(2, 32768, 65536);
  await Promise.all([
    one.queuePair.submit({
      opcode: 'read',
      sges: [{ region: one.memory, length: 32768 }],
      remote: two.memory.remote(),
    }),
    one.queuePair.submit({
      opcode: 'write',
      fence: true,
      sges: [{ region: one.memory, offset: 32768, length: 32768 }],
      remote: two.memory.remote(),
    }),
  ]);
  expect(one.memory.bytes.subarray(0, 32768).every((byte) => byte === 1)).toBe(true);
  expect(two.memory.bytes.subarray(0, 32768).every((byte) => byte === 2)).toBe(true);
  await Promise.all(ends.map((end) => end.close()));
});
