import { setImmediate as nextTurn } from 'node:timers/promises';
import { rings, type WorkCompletion } from 'node-rdma/verbs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useBinding } from '#lib/binding/addon.js';
import { devices } from '../support/devices.js';
import { Random } from '../support/random.js';
import { connectPair, type Pair } from '../support/verbs/endpoint.js';

const records = Number(process.env.NODE_RDMA_FUZZ_RECORDS ?? 5_000);
/** The records of one connection: after a wrong key the peer ends it, and everything later is refused. */
const perConnection = 500;
const seed = Number(process.env.NODE_RDMA_FUZZ_SEED ?? Date.now() % 0xffff_ffff);
const capacity = 1024;
const signaled = 1;

beforeAll(() => console.log(`NODE_RDMA_FUZZ_SEED=${seed}`));

/** Writes the ring as a program with a wild pointer would: past all that the classes above it check. */
class WildRing {
  readonly #bytes: DataView;
  readonly #control: Uint32Array;
  readonly #at = useBinding().native.layout.workRequest;
  readonly #head: number;

  constructor() {
    const { native, rings } = useBinding();
    this.#bytes = new DataView(rings.requests);
    this.#control = new Uint32Array(rings.control);
    this.#head = native.layout.control.requestHead >> 2;
  }

  /** Adds a record whose fields may hold anything, and `more` records of gather elements behind it. */
  add(fields: Record<string, number | bigint>, more: readonly (readonly [number, number, bigint])[]): void {
    this.#record((byte) => {
      for (const [name, value] of Object.entries(fields)) this.#set(byte, name, value);
    });
    for (let i = 0; i < more.length; i += 4) {
      this.#record((byte) => {
        more.slice(i, i + 4).forEach(([region, length, offset], j) => {
          this.#bytes.setUint32(byte + j * 16, region, true);
          this.#bytes.setUint32(byte + j * 16 + 4, length, true);
          this.#bytes.setBigUint64(byte + j * 16 + 8, offset, true);
        });
      });
    }
  }

  #record(write: (byte: number) => void): void {
    const head = this.#control[this.#head]!;
    const byte = (head % capacity) * this.#at.size;
    for (let i = 0; i < this.#at.size; i += 4) this.#bytes.setUint32(byte + i, 0);
    write(byte);
    this.#control[this.#head] = head + 1;
  }

  #set(byte: number, name: string, value: number | bigint): void {
    const at = byte + (this.#at as Record<string, number>)[name]!;
    if (typeof value === 'bigint') this.#bytes.setBigUint64(at, value, true);
    else if (name === 'opcode' || name === 'flags' || name === 'sgeCount') this.#bytes.setUint8(at, value);
    else this.#bytes.setUint32(at, value, true);
  }
}

interface Tally {
  completions: number[];
  refused: number;
  succeeded: number;
}

function fill(random: Random, ring: WildRing, pair: Pair, count: number, tally: Tally): Set<number> {
  const { active, passive } = pair;
  const regions = [active.memory.handle, active.memory.handle, passive.memory.handle, 0, 0xffff_ffff, 1];
  const queuePairs = [active.queuePair.handle, active.pd.handle, 0, 0xffff_ffff, random.u32()];
  const offset = () =>
    random.chance(80) ? BigInt(random.below(65_000)) : BigInt(random.u32()) << BigInt(random.below(33));
  const length = () => (random.chance(80) ? random.below(512) : random.u32());
  const region = () => (random.chance(80) ? active.memory.handle : random.pick(regions));
  const owed = new Set<number>();
  const { slots } = rings();
  for (let i = 0; i < count; i++) {
    const number = tally.completions.length;
    tally.completions.push(0);
    const complete = (completion: WorkCompletion) => {
      tally.completions[number]!++;
      if (completion.ok) tally.succeeded++;
      else if (completion.status === 0xf0) tally.refused++;
    };
    const slot = slots.acquire({ complete });
    const flags = random.chance(70) ? signaled | random.below(16) : random.below(256);
    const opcode = random.chance(70) ? random.pick([0, 2, 4, 128, 128]) : random.below(256);
    if ((flags & signaled) !== 0 || opcode === 128) owed.add(number);
    const sgeCount = random.chance(85) ? random.below(3) : random.below(256);
    const remote = random.chance(90) ? passive.memory.address : BigInt(random.u32());
    // As many as the record claims: with fewer, the records behind it would be taken for them.
    const elements = sgeCount > 1 && sgeCount <= 16 ? sgeCount - 1 : 0;
    ring.add(
      {
        queuePair: random.chance(85) ? active.queuePair.handle : random.pick(queuePairs),
        opcode,
        flags,
        sgeCount,
        slot,
        generation: slots.generation(slot),
        region: region(),
        length: length(),
        offset: offset(),
        remoteAddress: remote + BigInt(random.below(1000)),
        rkey: random.chance(97) ? passive.memory.rkey : random.u32(),
        immediate: random.u32(),
        compareAdd: BigInt(random.u32()),
        swap: BigInt(random.u32()),
      },
      Array.from({ length: elements }, () => [region(), length(), offset()] as const),
    );
    // A record has at most four continuations, so the ring takes this many.
    if (random.chance(5) || i % 128 === 127) useBinding().native.flush();
  }
  useBinding().native.flush();
  return owed;
}

describe.each(devices)('on %s', (_, device) => {
  const tally: Tally = { completions: [], refused: 0, succeeded: 0 };

  afterAll(() =>
    console.log(`${device.device}: ${tally.succeeded} succeeded, ${tally.refused} were refused`),
  );

  test(`each of ${records} random records has its one completion, and the process lives`, async () => {
    const random = new Random(seed);
    const ring = new WildRing();
    const options = { queuePair: { maxSendSges: 3, maxReceiveSges: 3, maxInlineData: 32 } };
    while (tally.completions.length < records) {
      const pair = await connectPair(device, { active: options, passive: options });
      const region = pair.passive.memory;
      const answer = { complete: () => {} };
      for (let i = 0; i < 64; i++) {
        pair.passive.queuePair.post({ opcode: 'receive', sges: [{ region, length: 65_536 }] }, answer);
      }
      rings().requests.flush();
      const first = tally.completions.length;
      const owed = fill(random, ring, pair, perConnection, tally);
      for (let i = 0; i < 20; i++) await nextTurn();
      await pair.close();
      await nextTurn();
      tally.completions.slice(first).forEach((count, i) => {
        const number = first + i;
        if (owed.has(number)) expect([number, count]).toEqual([number, 1]);
        else expect(count).toBeLessThanOrEqual(1);
      });
    }
    expect(tally.refused).toBeGreaterThan(records / 20);
    expect(tally.succeeded).toBeGreaterThan(records / 200);
  }, 240_000);

  test('a head that claims more than the ring holds is no more than a ring full', async () => {
    const { native, rings: buffers } = useBinding();
    const control = new Uint32Array(buffers.control);
    const head = native.layout.control.requestHead >> 2;
    const tail = native.layout.control.requestTail >> 2;
    new Uint8Array(buffers.requests).fill(0xff);
    for (const distance of [capacity + 1, 0x7fff_ffff, 0xffff_ffff]) {
      control[head] = control[tail]! + distance;
      native.flush();
      expect(control[head]).toBe(control[tail]);
      await nextTurn();
    }
    const pair = await connectPair(device);
    const received = pair.passive.receive(64);
    await pair.active.send(9);
    expect(await received).toEqual({ byteLength: 9 });
    await pair.close();
  });
});
