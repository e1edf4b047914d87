import { SlotTable } from 'node-rdma/verbs';
import { expect, test } from 'vitest';
import { Random } from '../support/random.js';

const handler = () => ({ complete: () => {} });

test('a slot gives its handler back once, to whoever knows its generation', () => {
  const table = new SlotTable();
  const first = handler();
  const slot = table.acquire(first);
  const generation = table.generation(slot);
  expect(table.size).toBe(1);
  expect(table.release(slot, generation + 1)).toBeUndefined();
  expect(table.release(slot, generation)).toBe(first);
  expect(table.release(slot, generation)).toBeUndefined();
  expect(table.size).toBe(0);
});

test('a slot that is used again has another generation', () => {
  const table = new SlotTable();
  const slot = table.acquire(handler());
  const generation = table.generation(slot);
  table.release(slot, generation);
  const second = handler();
  expect(table.acquire(second)).toBe(slot);
  expect(table.generation(slot)).not.toBe(generation);
  expect(table.release(slot, generation)).toBeUndefined();
  expect(table.size).toBe(1);
  expect(table.release(slot, table.generation(slot))).toBe(second);
});

test('slots that never were release nothing', () => {
  const table = new SlotTable();
  table.acquire(handler());
  for (const slot of [1, 1000, -1, 0.5, 2 ** 32, Number.NaN]) expect(table.release(slot, 0)).toBeUndefined();
  expect(table.size).toBe(1);
});

test('handlers in use have slots of their own, and the table grows by no more than it needs', () => {
  const table = new SlotTable();
  const most = 3000;
  const slots = new Set(Array.from({ length: most }, () => table.acquire(handler())));
  expect(slots.size).toBe(most);
  for (const slot of slots) table.release(slot, table.generation(slot));
  for (let i = 0; i < most; i++) expect(slots).toContain(table.acquire(handler()));
  expect(table.size).toBe(most);
});

test('whatever the order of requests and completions, each handler comes back exactly once', () => {
  const random = new Random(20_260_101);
  const table = new SlotTable();
  const waiting: { slot: number; generation: number; handler: object }[] = [];
  for (let i = 0; i < 20_000; i++) {
    if (random.chance(52)) {
      const each = handler();
      const slot = table.acquire(each);
      waiting.push({ slot, generation: table.generation(slot), handler: each });
    } else if (waiting.length > 0) {
      const [request] = waiting.splice(random.below(waiting.length), 1);
      const { slot, generation, handler: each } = request!;
      expect(table.release(slot, generation)).toBe(each);
      expect(table.release(slot, generation)).toBeUndefined();
    }
  }
  expect(table.size).toBe(waiting.length);
});
