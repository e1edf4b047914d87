import { describe, expect, test } from 'vitest';
import { controlReceives, FlowControl, messageKinds } from '#lib/connection/flow-control.js';

/** Numbers that look random and are the same in each run. */
function* randomNumbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** One end of a model connection: what it has to send, what it has received, and the receives that it has posted. */
class Side {
  readonly flow: FlowControl;
  readonly wire: number[] = [];
  posted: number;
  toSend: number;
  unread = 0;
  read = 0;
  goodbye = false;

  constructor(receiveDepth: number, peerDepth: number, toSend: number) {
    this.flow = new FlowControl(receiveDepth, peerDepth);
    this.posted = receiveDepth + controlReceives;
    this.toSend = toSend;
  }

  get actions(): (() => void)[] {
    const actions: (() => void)[] = [];
    if (this.toSend > 0 && this.flow.credits > 0) actions.push(() => this.#send(messageKinds.data));
    if (this.flow.updateDue) actions.push(() => this.#send(messageKinds.credits));
    if (this.unread > 0) actions.push(() => this.#readOne());
    return actions;
  }

  #send(kind: number): void {
    if (kind === messageKinds.data) this.toSend--;
    this.wire.push(this.flow.prefix(kind));
  }

  sayGoodbye(): void {
    this.goodbye = true;
    this.#send(messageKinds.goodbye);
  }

  take(prefix: number): void {
    this.posted--;
    expect(this.posted, 'a message found no receive').toBeGreaterThanOrEqual(0);
    if (this.flow.receive(prefix) === messageKinds.data) this.unread++;
    else this.posted++;
  }

  #readOne(): void {
    this.unread--;
    this.read++;
    this.posted++;
    this.flow.reposted();
  }
}

function run(seed: number, depths: [number, number], messages: [number, number]): [Side, Side] {
  const random = randomNumbers(seed);
  const left = new Side(depths[0], depths[1], messages[0]);
  const right = new Side(depths[1], depths[0], messages[1]);
  for (;;) {
    const actions = [...left.actions, ...right.actions];
    for (const [from, to] of [
      [left, right],
      [right, left],
    ] as const) {
      if (from.wire.length > 0) actions.push(() => to.take(from.wire.shift()!));
      if (from.toSend === 0 && !from.goodbye && random.next().value < 0.1) {
        actions.push(() => from.sayGoodbye());
      }
    }
    if (actions.length === 0) return [left, right];
    actions[Math.floor(random.next().value * actions.length)]!();
  }
}

describe('credits', () => {
  test.each([
    [1, 1],
    [1, 64],
    [2, 3],
    [64, 64],
  ])(
    'with %i and %i receives neither overrun the other side nor come to a halt, in any order of events',
    (a, b) => {
      for (let seed = 1; seed <= 100; seed++) {
        const [left, right] = run(seed, [a, b], [150, 150]);
        expect([left.read, right.read], `seed ${seed}`).toEqual([150, 150]);
      }
    },
  );

  test('let one side speak without ever being answered', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const [, right] = run(seed, [4, 4], [500, 0]);
      expect(right.read, `seed ${seed}`).toBe(500);
    }
  });

  test('are used up by messages of the user, not by updates and goodbye', () => {
    const flow = new FlowControl(4, 3);
    flow.prefix(messageKinds.credits);
    flow.prefix(messageKinds.goodbye);
    expect(flow.credits).toBe(3);
    flow.prefix(messageKinds.data);
    expect(flow.credits).toBe(2);
  });

  test('go back with the next message', () => {
    const receiver = new FlowControl(8, 8);
    const sender = new FlowControl(8, 8);
    receiver.receive(sender.prefix(messageKinds.data));
    receiver.reposted();
    expect(receiver.updateDue).toBe(false);
    sender.receive(receiver.prefix(messageKinds.data));
    expect(sender.credits).toBe(8);
  });

  test('make an update due while leases hold most of the receives', () => {
    const receiver = new FlowControl(4, 4);
    const sender = new FlowControl(4, 4);
    for (let i = 0; i < 4; i++) receiver.receive(sender.prefix(messageKinds.data));
    expect(receiver.updateDue).toBe(false);
    receiver.reposted();
    expect(receiver.updateDue).toBe(true);
  });

  test('have no second update under way before the first is acknowledged', () => {
    const receiver = new FlowControl(1, 1);
    const sender = new FlowControl(1, 1);
    const exchange = () => {
      receiver.receive(sender.prefix(messageKinds.data));
      receiver.reposted();
    };
    exchange();
    const update = receiver.prefix(messageKinds.credits);
    receiver.receive(0x0000_0000);
    receiver.reposted();
    expect(receiver.updateDue).toBe(false);
    sender.receive(update);
    receiver.receive(sender.prefix(messageKinds.data));
    expect(receiver.updateDue).toBe(true);
  });
});
