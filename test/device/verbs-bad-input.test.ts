import * as verbs from 'node-rdma/verbs';
import {
  CompletionChannel,
  CompletionQueue,
  Device,
  type MemoryRegion,
  ProtectionDomain,
  QueuePair,
  RemoteMemory,
  SlotTable,
} from 'node-rdma/verbs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { siw } from '../support/devices.js';

const type = 'ERR_INVALID_ARG_TYPE';
const value = 'ERR_INVALID_ARG_VALUE';
const range = 'ERR_OUT_OF_RANGE';

/** Values of every type but those named. */
function not(...types: string[]): unknown[] {
  const values: Record<string, unknown> = {
    undefined: undefined,
    null: null,
    boolean: true,
    number: 1,
    bigint: 1n,
    string: 'text',
    symbol: Symbol('symbol'),
    function: () => {},
    object: {},
    array: [],
    bare: Object.create(null),
  };
  return Object.entries(values)
    .filter(([name]) => !types.includes(name))
    .map(([, each]) => each);
}
const notInteger = not('undefined', 'number');
const notObject = not('undefined', 'object', 'bare');
const outside = (min: number, max: number) => [min - 1, max + 1, min + 0.5, Number.NaN, Infinity, -Infinity];

let device: Device;
let pd: ProtectionDomain;
let cq: CompletionQueue;
let region: MemoryRegion;
let queuePair: QueuePair;

beforeAll(() => {
  device = Device.open(siw.device);
  pd = new ProtectionDomain(device);
  cq = new CompletionQueue(device, { entries: 16 });
  region = pd.allocateSync(4096);
  queuePair = new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq });
});

afterAll(() => device.close());

type Row = readonly [code: string, values: readonly unknown[], call: (value: never) => unknown];

const handler = { complete: () => {} };
const post = (request: unknown) => queuePair.post(request as never, handler);
const makeQueue = (options: object) => new CompletionQueue(device, { entries: 4, ...options });
const makePair = (options: object) =>
  new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq, ...options });

const rows: Record<string, Row> = {
  'Device.open name': [type, not('string'), (bad) => Device.open(bad)],
  'Device.open name that no device has': [
    'ENODEV',
    ['', 'nosuch', '../siw0', 'x'.repeat(10_000)],
    (bad) => Device.open(bad),
  ],
  'new Device handle': [type, not('number'), (bad) => new Device(bad)],
  'new Device wild handle': ['ERR_RDMA_INVALID_HANDLE', [0xffff_ffff, 0xffff], (bad) => new Device(bad)],
  'queryPort port': [type, notInteger, (bad) => device.queryPort(bad)],
  'queryPort port out of range': [range, outside(1, 255), (bad) => device.queryPort(bad)],
  'queryPort port that is not there': ['EINVAL', [200], (bad) => device.queryPort(bad)],
  'queryGid port': [range, outside(1, 255), (bad) => device.queryGid(bad, 0)],
  'queryGid index': [range, outside(0, 0x7fff_ffff), (bad) => device.queryGid(1, bad)],
  'new ProtectionDomain device': [type, not(), (bad) => new ProtectionDomain(bad)],
  'new CompletionChannel device': [type, not(), (bad) => new CompletionChannel(bad)],
  'new CompletionQueue device': [type, not(), (bad) => new CompletionQueue(bad, { entries: 1 })],
  'new CompletionQueue device, polled': [
    type,
    not(),
    (bad) => new CompletionQueue(bad, { entries: 1, waiting: 'poll' }),
  ],
  'new CompletionQueue options': [type, not('object', 'bare'), (bad) => new CompletionQueue(device, bad)],
  'new CompletionQueue entries': [type, not('number'), (entries) => makeQueue({ entries })],
  'new CompletionQueue entries out of range': [
    range,
    outside(1, 0x7fff_ffff),
    (entries) => makeQueue({ entries }),
  ],
  'new CompletionQueue entries too many': ['EINVAL', [0x7fff_ffff], (entries) => makeQueue({ entries })],
  'new CompletionQueue waiting': [
    type,
    not('undefined', 'null', 'string'),
    (waiting) => makeQueue({ waiting }),
  ],
  'new CompletionQueue waiting unknown': [
    value,
    ['', 'sleep', '__proto__'],
    (waiting) => makeQueue({ waiting }),
  ],
  'new CompletionQueue spin': [range, outside(0, 1000), (spin) => makeQueue({ spin })],
  'new CompletionQueue channel': [type, not('undefined'), (channel) => makeQueue({ channel })],
  'new CompletionQueue onCompletion': [
    type,
    not('undefined', 'function'),
    (onCompletion) => makeQueue({ onCompletion }),
  ],
  'poll limit': [type, notInteger, (bad) => cq.poll(bad)],
  'poll limit out of range': [range, outside(1, 0x7fff_ffff), (bad) => cq.poll(bad)],
  'new QueuePair pd': [
    type,
    not(),
    (bad) => new QueuePair(bad, { sendCompletionQueue: cq, receiveCompletionQueue: cq }),
  ],
  'new QueuePair options': [type, not('object', 'bare'), (bad) => new QueuePair(pd, bad)],
  'new QueuePair sendCompletionQueue': [
    type,
    not(),
    (sendCompletionQueue) => makePair({ sendCompletionQueue }),
  ],
  'new QueuePair receiveCompletionQueue': [
    type,
    not(),
    (receiveCompletionQueue) => makePair({ receiveCompletionQueue }),
  ],
  'new QueuePair type': [value, ['', 'rc', 'XRC'], (bad) => makePair({ type: bad })],
  'new QueuePair maxSendRequests': [range, outside(0, 1 << 20), (bad) => makePair({ maxSendRequests: bad })],
  'new QueuePair maxReceiveRequests': [
    range,
    outside(0, 1 << 20),
    (bad) => makePair({ maxReceiveRequests: bad }),
  ],
  'new QueuePair maxSendSges': [range, outside(0, 16), (bad) => makePair({ maxSendSges: bad })],
  'new QueuePair maxReceiveSges': [range, outside(0, 16), (bad) => makePair({ maxReceiveSges: bad })],
  'new QueuePair maxInlineData': [range, outside(0, 1 << 16), (bad) => makePair({ maxInlineData: bad })],
  'allocateSync length': [type, not('number'), (bad) => pd.allocateSync(bad)],
  'allocateSync length out of range': [
    range,
    [0, -1, 0.5, Number.NaN, 2 ** 53],
    (bad) => pd.allocateSync(bad),
  ],
  'allocateSync options': [type, notObject, (bad) => pd.allocateSync(1, bad)],
  'allocateSync access': [
    type,
    not('undefined', 'null', 'array'),
    (access) => pd.allocateSync(1, { access }),
  ],
  'allocateSync access unknown': [
    value,
    [['write'], [undefined], [{}], ['__proto__'], [Symbol('access')]],
    (access) => pd.allocateSync(1, { access }),
  ],
  'allocateSync hugePages': [
    type,
    not('undefined', 'null', 'boolean'),
    (hugePages) => pd.allocateSync(1, { hugePages }),
  ],
  'remote offset': [range, outside(0, 4096), (bad) => region.remote(bad)],
  'remote length': [range, outside(0, 4000), (bad) => region.remote(96, bad)],
  'post request': [type, not('object', 'bare', 'array', 'function'), post],
  'post opcode': [type, not('string'), (opcode) => post({ opcode })],
  'post opcode unknown': [value, ['', 'Send', 'toString'], (opcode) => post({ opcode })],
  'post handler': [type, not(), (bad) => queuePair.post({ opcode: 'send' }, bad)],
  'post sges': [type, not('undefined', 'array'), (sges) => post({ opcode: 'send', sges })],
  'post sges too many': [range, [Array.from({ length: 17 })], (sges) => post({ opcode: 'send', sges })],
  'post sge': [type, not(), (sge) => post({ opcode: 'send', sges: [sge] })],
  'post sge region': [type, not(), (bad) => post({ opcode: 'send', sges: [{ region: bad }] })],
  'post sge offset': [
    range,
    outside(0, 4096),
    (offset) => post({ opcode: 'send', sges: [{ region, offset, length: 0 }] }),
  ],
  'post sge length': [
    range,
    outside(0, 4096),
    (length) => post({ opcode: 'send', sges: [{ region, length }] }),
  ],
  'post remote': [type, not('undefined'), (remote) => post({ opcode: 'write', remote })],
  'post immediate': [range, outside(0, 0xffff_ffff), (immediate) => post({ opcode: 'send', immediate })],
  'post compareAdd': [
    type,
    not('undefined', 'bigint'),
    (compareAdd) => post({ opcode: 'fetchAndAdd', compareAdd }),
  ],
  'post swap': [type, not('undefined', 'bigint'), (swap) => post({ opcode: 'compareAndSwap', swap })],
  'modify attributes': [type, not('object', 'bare', 'array', 'function'), (bad) => queuePair.modify(bad)],
  'modify state': [range, [7, -1, 0.5], (state) => queuePair.modify({ state })],
  'new RemoteMemory address': [type, not('bigint'), (bad) => new RemoteMemory(bad, 1, 1)],
  'new RemoteMemory rkey': [range, outside(0, 0xffff_ffff), (bad) => new RemoteMemory(1n, bad, 1)],
  'new RemoteMemory length': [range, [-1, 0.5, 2 ** 53], (bad) => new RemoteMemory(1n, 1, bad)],
  'slice offset': [range, outside(0, 10), (bad) => new RemoteMemory(1n, 1, 10).slice(bad)],
  'slice length': [range, outside(0, 6), (bad) => new RemoteMemory(1n, 1, 10).slice(4, bad)],
  'fromBytes bytes': [
    type,
    [...not(), new ArrayBuffer(20), new Uint16Array(20)],
    (bad) => RemoteMemory.fromBytes(bad),
  ],
  'fromBytes too short': [
    range,
    [new Uint8Array(0), new Uint8Array(19)],
    (bad) => RemoteMemory.fromBytes(bad),
  ],
  'fromBytes of an impossible length': [
    range,
    [new Uint8Array(20).fill(0xff)],
    (bad) => RemoteMemory.fromBytes(bad),
  ],
  'fromJSON json': [type, not('object', 'bare', 'array'), (bad) => RemoteMemory.fromJSON(bad)],
  'fromJSON address': [
    type,
    not('string'),
    (address) => RemoteMemory.fromJSON({ address, rkey: 1, length: 1 }),
  ],
  'fromJSON address that is none': [
    value,
    ['', '0x10', '-1', '1'.repeat(1000)],
    (address) => RemoteMemory.fromJSON({ address, rkey: 1, length: 1 }),
  ],
};

const promised: Record<string, Row> = {
  'allocate length': [type, not('number'), (bad) => pd.allocate(bad)],
  'allocate options': [type, notObject, (bad) => pd.allocate(1, bad)],
  'allocate access': [value, [['everything']], (access) => pd.allocate(1, { access })],
  'register memory': [
    type,
    [...not(), new Uint16Array(4), new DataView(new ArrayBuffer(4))],
    (bad) => pd.register(bad),
  ],
  'register nothing': [range, [new ArrayBuffer(0), new Uint8Array(0), detached()], (bad) => pd.register(bad)],
  'register options': [type, notObject, (bad) => pd.register(new Uint8Array(8), bad)],
  'submit opcode': [value, ['nothing'], async (opcode) => queuePair.submit({ opcode })],
};

function detached(): Uint8Array {
  const view = new Uint8Array(16);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
}

test.each(Object.entries(rows))('%s is refused', (_, [code, values, call]) => {
  for (const bad of values) {
    expect(() => call(bad as never)).toThrow(expect.objectContaining({ code }));
  }
  expect(values.length).toBeGreaterThan(0);
});

test.each(Object.entries(promised))('%s is refused', async (_, [code, values, call]) => {
  for (const bad of values) await expect(call(bad as never)).rejects.toMatchObject({ code });
  expect(values.length).toBeGreaterThan(0);
});

test('every class of the entry point is in the tables, or takes no input', () => {
  const classes = Object.entries(verbs)
    .filter(([, each]) => typeof each === 'function' && each.prototype !== undefined)
    .map(([name]) => name);
  expect(classes.sort()).toEqual([
    'AddressHandle',
    'CompletionChannel',
    'CompletionQueue',
    'Device',
    'MemoryRegion',
    'MemoryWindow',
    'ProtectionDomain',
    'QueuePair',
    'RdmaError',
    'RemoteMemory',
    'RequestRing',
    'SharedReceiveQueue',
    'SlotTable',
    'WorkCompletion',
    'WorkCompletionError',
    'rings',
  ]);
  const named = new Set(Object.getOwnPropertyNames(QueuePair.prototype));
  expect([...named].sort()).toEqual([
    'attachMulticast',
    'beforeClose',
    'completionKey',
    'constructor',
    'detachMulticast',
    'events',
    'inFlight',
    'modify',
    'post',
    'query',
    'submit',
  ]);
});

test('a getter of a request may close the queue pair', async () => {
  const other = new QueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq });
  let closing: Promise<void> | undefined;
  const request = {
    get opcode() {
      closing = other.close();
      return 'send' as const;
    },
  };
  expect(() => other.post(request, handler)).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }));
  await closing;
});

test('what a getter throws reaches the caller, and no slot is lost', () => {
  const { slots } = verbs.rings();
  const before = slots.size;
  const thrown = new Error('from the getter');
  const request = {
    opcode: 'send' as const,
    get sges(): never {
      throw thrown;
    },
  };
  expect(() => queuePair.post(request, handler)).toThrow(thrown);
  expect(slots.size).toBe(before);
});

test('a resizable buffer is not registered', async () => {
  const resizable = Reflect.construct(ArrayBuffer, [64, { maxByteLength: 128 }]) as ArrayBuffer;
  await expect(pd.register(resizable)).rejects.toMatchObject({ code: value });
});

test('registered memory can not be transferred, from the moment it is asked for', async () => {
  const view = new Uint8Array(8192);
  const registering = pd.register(view);
  // A copy goes, or, in newer versions of Node, none.
  try {
    structuredClone(view.buffer, { transfer: [view.buffer] });
  } catch (error) {
    expect(error).toMatchObject({ name: 'DataCloneError' });
  }
  expect(view.byteLength).toBe(8192);
  const registered = await registering;
  expect(registered.bytes).toBe(view);
  await registered.close();
});

test('shared memory is registered in place', async () => {
  const shared = new SharedArrayBuffer(8192);
  const registered = await pd.register(shared);
  expect(registered.bytes.buffer).toBe(shared);
  expect(registered.length).toBe(8192);
  await registered.close();
});

describe('a queue pair that is not connected', () => {
  test.each([
    ['send', 'ENOTCONN'],
    ['write', 'ENOTCONN'],
    ['read', 'ENOTCONN'],
    ['compareAndSwap', 'ENOTSUP'],
    ['bindMemoryWindow', 'ENOTSUP'],
    ['receive', 'EINVAL'],
  ] as const)('refuses %s', async (opcode, code) => {
    await expect(queuePair.submit({ opcode, sges: [{ region, length: 8 }] })).rejects.toMatchObject({
      code: 'ERR_RDMA_WC_POST_FAILED',
      cause: { code },
    });
  });
});

test('objects of different devices do not go together', async () => {
  const other = Device.open('rxe0');
  const otherQueue = new CompletionQueue(other, { entries: 4 });
  expect(() => makePair({ sendCompletionQueue: otherQueue })).toThrow(
    expect.objectContaining({ code: 'EINVAL' }),
  );
  const channel = new CompletionChannel(other);
  expect(() => makeQueue({ channel })).toThrow(expect.objectContaining({ code: 'EINVAL' }));
  await other.close();
});

test('a slot and a generation that do not fit release nothing', () => {
  const table = new SlotTable();
  for (const slot of [0, -1, 0.5, 2 ** 32, Number.NaN]) expect(table.release(slot, 0)).toBeUndefined();
});
