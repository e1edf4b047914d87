import { once } from 'node:events';
import { rings, type Waiting, type WorkCompletion } from 'node-rdma/verbs';
import { describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { devices, siw } from '../support/devices.js';
import { connectPair } from '../support/verbs/endpoint.js';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe.each(devices)('on %s', (_, device) => {
  test.each<Waiting>(['event', 'poll', 'adaptive'])('waiting by %s delivers completions', async (waiting) => {
    const completionQueue = { waiting };
    const pair = await connectPair(device, { active: { completionQueue }, passive: { completionQueue } });
    for (let i = 0; i < 20; i++) {
      const received = pair.passive.receive(64);
      await pair.active.send(i);
      expect(await received).toEqual({ byteLength: i });
    }
    await pair.close();
  });

  test('a queue that is polled by hand delivers in poll() and at no other time', async () => {
    const completions: number[] = [];
    const onCompletion = (completion: WorkCompletion) => completions.push(completion.byteLength);
    const pair = await connectPair(device, {
      passive: { completionQueue: { waiting: 'manual', onCompletion } },
    });
    const { passive, active } = pair;
    const region = passive.memory;
    const ignored = { complete: () => {} };
    for (let i = 0; i < 4; i++) {
      passive.queuePair.post({ opcode: 'receive', sges: [{ region, length: 64 }] }, ignored);
    }
    rings().requests.flush();
    for (let i = 0; i < 4; i++) await active.send(i + 1);
    expect(completions).toEqual([]);
    while (completions.length < 3) passive.cq.poll(3 - completions.length);
    await nextTurn();
    expect(completions).toEqual([1, 2, 3]);
    while (completions.length < 4) passive.cq.poll();
    expect(completions).toEqual([1, 2, 3, 4]);
    expect(passive.cq.poll()).toBe(0);
    await pair.close();
  });

  test('poll() inside a handler throws EBUSY, and nothing is lost', async () => {
    const seen: unknown[] = [];
    const pair = await connectPair(device);
    const { passive, active } = pair;
    const sges = [{ region: passive.memory, length: 64 }];
    const done = new Promise<void>((resolve) => {
      const complete = () => {
        try {
          passive.cq.poll();
        } catch (error) {
          seen.push((error as { code: string }).code);
        }
        if (seen.length === 3) resolve();
      };
      for (let i = 0; i < 3; i++) passive.queuePair.post({ opcode: 'receive', sges }, { complete });
    });
    await Promise.all([active.send(1), active.send(1), active.send(1)]);
    await done;
    expect(seen).toEqual(['EBUSY', 'EBUSY', 'EBUSY']);
    await pair.close();
  });

  test('what a handler posts is on the wire without a turn of the loop between', async () => {
    const pair = await connectPair(device);
    const { passive, active } = pair;
    const answered = active.receive(64);
    const asked = passive.receive(64);
    const answer = asked.then(() => passive.send(3));
    await active.send(1);
    expect(await answered).toEqual({ byteLength: 3 });
    await answer;
    await pair.close();
  });

  test('a peer that is gone flushes what was posted', async () => {
    const pair = await connectPair(device);
    const pending = Promise.allSettled(Array.from({ length: 8 }, () => pair.passive.receive(64)));
    rings().requests.flush();
    pair.active.id.disconnect();
    pair.passive.id.disconnect();
    for (const result of await pending) {
      expect(result).toMatchObject({ reason: { code: 'ERR_RDMA_WC_WR_FLUSH_ERR', opcode: 'receive' } });
    }
    await expect(pair.passive.send(4)).rejects.toMatchObject({ name: 'WorkCompletionError' });
    await pair.close();
  });

  test.each(['active', 'passive'] as const)(
    'what the passive side posts before it knows that the %s side has disconnected is settled',
    async (side) => {
      const pair = await connectPair(device);
      const told = once(pair.passive.id, 'disconnected');
      pair[side].id.disconnect();
      const posted = [pair.passive.send(4), pair.passive.receive(64), pair.passive.send(4)];
      rings().requests.flush();
      if (side === 'active') {
        await told;
        // rxe leaves the queue pair as it is until then.
        pair.passive.id.disconnect();
      }
      const settled = await Promise.allSettled(posted);
      expect(settled[1]).toMatchObject({ reason: { name: 'WorkCompletionError' } });
      // It could be faster than the peer's end, not than its own.
      if (side === 'passive') {
        for (const result of settled)
          expect(result).toMatchObject({ reason: { name: 'WorkCompletionError' } });
      }
      await pair.close();
    },
  );

  test('when a queue was too short for its completions, every request has still one in the end', async () => {
    const completionQueue = { entries: 1, waiting: 'manual' } as const;
    const pair = await connectPair(device, { passive: { completionQueue } });
    const count = Math.min(pair.passive.cq.entries + 8, 100);
    const fate = (request: Promise<unknown>) =>
      request.then(
        () => 'done',
        () => 'failed',
      );
    const received = Array.from({ length: count }, () => fate(pair.passive.receive(64)));
    const sent = Array.from({ length: count }, () => fate(pair.active.send(1)));
    expect(await sent[0]).toBe('done');
    await pair.close();
    expect(await Promise.all([...sent, ...received])).toHaveLength(2 * count);
  });
});

test('a handler that throws has had its completion, and the others come again', async () => {
  const child = await runChild('test/lifecycle/children/throwing-handler.js', [siw.device, siw.address]);
  expect(child.stderr).toBe('');
  expect(JSON.parse(child.stdout)).toEqual({
    order: Array.from({ length: 12 }, (_, i) => i),
    caught: ['message 2', 'message 5', 'message 6'],
  });
  expect(child.status).toBe(0);
});
