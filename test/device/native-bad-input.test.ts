import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Binding, useBinding } from '#lib/binding/addon.js';
import { rxe, siw } from '../support/devices.js';
import {
  handle,
  i31,
  integer,
  type Kind,
  type Parameter,
  u8,
  u16,
  u32,
} from '../support/native/parameter.js';
import { verbsParameters } from '../support/native/verbs-parameters.js';

const address: Parameter = { object: { address: { string: '10.77.0.1' }, port: integer(u16) } };
const connectionParameters: Parameter = {
  object: {
    responderResources: integer(u8),
    initiatorDepth: integer(u8),
    flowControl: integer([0, 1]),
    retryCount: integer([0, 7]),
    rnrRetryCount: integer([0, 7]),
    privateData: { bytes: true },
    queuePair: { handle: 'QueuePair', orNone: true },
  },
};

const parameters: Record<string, readonly Parameter[]> = {
  ...verbsParameters,
  initialize: [{ object: {} }],
  flush: [],
  objectCounts: [],
  pmixLoad: [{ string: '/nonexistent/libpmix.so' }],
  pmixInitialize: [],
  pmixPut: [{ string: 'key' }, { bytes: true }],
  pmixGet: [integer(u32), { string: 'key' }, integer(i31), { boolean: true }],
  pmixFence: [integer(i31)],
  pmixAbort: [integer(i31), { string: 'message' }],
  pmixFinalize: [],
  pmixFinalizeSync: [],
  listDevices: [],
  openDevice: [{ string: siw.device }],
  describeDevice: [handle('Device')],
  queryDevice: [handle('Device')],
  queryPort: [handle('Device'), integer([1, 255])],
  queryGid: [handle('Device'), integer([1, 255]), integer(i31)],
  closeDevice: [handle('Device')],
  allocatePd: [handle('Device')],
  deallocatePd: [handle('ProtectionDomain')],
  createCompletionChannel: [handle('Device')],
  destroyCompletionChannel: [handle('CompletionChannel')],
  setCompletionQueueWaiting: [handle('CompletionQueue'), integer([0, 3]), integer([0, 1000])],
  pollCompletionQueue: [handle('CompletionQueue'), integer([1, 0xffff_ffff])],
  destroyCompletionQueue: [handle('CompletionQueue')],
  referenceCompletionQueue: [handle('CompletionQueue'), { boolean: true }],
  createEventChannel: [],
  destroyEventChannel: [handle('EventChannel')],
  referenceEventChannel: [handle('EventChannel'), { boolean: true }],
  createId: [handle('EventChannel'), integer(u16, 0x0106)],
  setIdOption: [handle('CmId'), integer([0, 3]), integer(u8)],
  migrateId: [handle('CmId'), handle('EventChannel')],
  bindAddress: [handle('CmId'), { string: '10.77.0.1' }, integer(u16)],
  resolveAddress: [handle('CmId'), { ...address, orNull: true }, address, integer(i31)],
  resolveRoute: [handle('CmId'), integer(i31)],
  listen: [handle('CmId'), integer(i31)],
  connect: [handle('CmId'), connectionParameters],
  accept: [handle('CmId'), connectionParameters],
  reject: [handle('CmId'), { bytes: true }],
  establish: [handle('CmId')],
  notify: [handle('CmId'), integer(u8)],
  disconnect: [handle('CmId')],
  initialAttributes: [handle('CmId'), integer([0, 6])],
  joinMulticast: [handle('CmId'), integer([1, 0xffff_ffff]), { string: '239.1.2.3' }, { boolean: true }],
  leaveMulticast: [handle('CmId'), integer([1, 0xffff_ffff])],
  destroyId: [handle('CmId')],
  describeId: [handle('CmId')],
  deviceOfId: [handle('CmId')],
  getAddressInfo: [
    { string: 'localhost', orNull: true },
    { string: '7471', orNull: true },
    {
      object: {
        flags: integer(u16),
        family: integer(u16),
        portSpace: integer(u16),
        queuePairType: integer(u16),
        source: { ...address, orNull: true },
        destination: { ...address, orNull: true },
      },
    },
  ],
  getDevices: [],
};

const type = 'ERR_INVALID_ARG_TYPE';
const range = 'ERR_OUT_OF_RANGE';
const stale = 'ERR_RDMA_INVALID_HANDLE';

let binding: Binding;
let open: Record<Kind, number>;
let closed: Record<Kind, number>;

function makeObjects(): Record<Kind, number> {
  const { native } = binding;
  const device = native.openDevice(siw.device);
  const pd = native.allocatePd(device);
  const channel = native.createCompletionChannel(device);
  const cq = native.createCompletionQueue(device, 16, channel, 0).handle;
  const eventChannel = native.createEventChannel();
  // siw has neither windows nor addresses.
  const other = native.openDevice(rxe.device);
  const roce = native.allocatePd(other);
  return {
    Device: device,
    ProtectionDomain: pd,
    MemoryRegion: native.allocateMemory(pd, 4096, 1, false).handle,
    CompletionChannel: channel,
    CompletionQueue: cq,
    QueuePair: native.createQueuePair({
      pd,
      sendCq: cq,
      receiveCq: cq,
      type: 2,
      maxSendWr: 4,
      maxReceiveWr: 4,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineData: 0,
      cmId: 0,
      srq: 0,
    }).handle,
    SharedReceiveQueue: native.createSharedReceiveQueue(pd, 4, 1).handle,
    AddressHandle: native.createAddressHandle(roce, {
      gid: native.queryGid(other, 1, 0),
      sgidIndex: 0,
      hopLimit: 1,
      trafficClass: 0,
      flowLabel: 0,
      lid: 0,
      pathBits: 0,
      staticRate: 0,
      serviceLevel: 0,
      portNumber: 1,
    }),
    MemoryWindow: native.allocateMemoryWindow(roce, 2).handle,
    EventChannel: eventChannel,
    CmId: native.createId(eventChannel, 0x0106),
  };
}

async function destroyObjects(objects: Record<Kind, number>): Promise<void> {
  const { native } = binding;
  await native.destroyQueuePair(objects.QueuePair);
  await native.destroySharedReceiveQueue(objects.SharedReceiveQueue);
  native.destroyAddressHandle(objects.AddressHandle);
  native.deallocateMemoryWindow(objects.MemoryWindow);
  await native.deregisterMemory(objects.MemoryRegion);
  await native.destroyCompletionQueue(objects.CompletionQueue);
  native.destroyCompletionChannel(objects.CompletionChannel);
  native.deallocatePd(objects.ProtectionDomain);
  native.closeDevice(objects.Device);
  await native.destroyId(objects.CmId);
  await native.destroyEventChannel(objects.EventChannel);
}

function good(parameter: Parameter): unknown {
  if ('handle' in parameter) return parameter.orNone === true ? 0 : open[parameter.handle];
  if ('integer' in parameter) return parameter.good;
  if ('boolean' in parameter) return false;
  if ('string' in parameter) return parameter.string;
  if ('bytes' in parameter) return null;
  if ('view' in parameter) return new Uint8Array(16);
  return Object.fromEntries(Object.entries(parameter.object).map(([name, each]) => [name, good(each)]));
}

function detached(): Uint8Array {
  const view = new Uint8Array(16);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
}

/** Values that the parameter refuses, each with the code that it is refused with. */
function* bad(parameter: Parameter): Generator<readonly [value: unknown, code: string]> {
  if ('handle' in parameter) {
    for (const value of ['1', null, undefined, {}, 1n, true, Symbol('handle')]) yield [value, type];
    for (const value of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32]) yield [value, range];
    for (const value of [0xffff_ffff, 0x0010_0000, 0x000f_ffff]) yield [value, stale];
    if (parameter.orNone !== true) yield [0, stale];
    yield [closed[parameter.handle], stale];
    for (const [kind, value] of Object.entries(open)) if (kind !== parameter.handle) yield [value, stale];
  } else if ('integer' in parameter) {
    const [min, max] = parameter.integer;
    for (const value of ['1', null, {}, [1], 1n, true, Symbol('integer')]) yield [value, type];
    if (parameter.optional !== true) yield [undefined, type];
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN, -Infinity, Infinity]) yield [value, range];
  } else if ('boolean' in parameter) {
    for (const value of [0, 1, 'true', null, undefined, {}]) yield [value, type];
  } else if ('string' in parameter) {
    for (const value of [1, {}, [], Symbol('string'), 'null\0byte']) yield [value, type];
    if (parameter.orNull !== true) for (const value of [null, undefined]) yield [value, type];
  } else if ('bytes' in parameter) {
    for (const value of [
      'bytes',
      1,
      {},
      [1],
      new ArrayBuffer(8),
      new Uint16Array(4),
      new DataView(new ArrayBuffer(8)),
    ]) {
      yield [value, type];
    }
  } else if ('view' in parameter) {
    for (const value of [
      null,
      'view',
      1,
      {},
      new ArrayBuffer(8),
      new Uint16Array(4),
      new Uint8Array(0),
      detached(),
    ]) {
      yield [value, type];
    }
  } else {
    const takes = good(parameter) as object;
    for (const value of [undefined, 1, 'object', Symbol('object')]) yield [value, type];
    if (parameter.orNull !== true) yield [null, type];
    for (const [name, property] of Object.entries(parameter.object)) {
      for (const [value, code] of bad(property)) {
        // Where an object is optional, what is none counts as left out.
        if ('object' in property && (typeof value !== 'object' || value === null)) continue;
        yield [{ ...takes, [name]: value }, code];
      }
    }
  }
}

function call(name: string, values: readonly unknown[]): unknown {
  const functions = binding.native as unknown as Record<string, (...values: unknown[]) => unknown>;
  return functions[name]!(...values);
}

function show(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return `{ ${Object.entries(value).map(([name, each]) => `${name}: ${show(each)}`)} }`;
}

/** The code of what a call throws, or that it does not. */
function codeOf(name: string, values: readonly unknown[]): unknown {
  try {
    const result = call(name, values);
    if (result instanceof Promise) result.catch(() => {});
    return 'nothing was thrown';
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
}

beforeAll(async () => {
  binding = useBinding();
  closed = makeObjects();
  open = makeObjects();
  await destroyObjects(closed);
});

afterAll(() => destroyObjects(open));

test('every function of the addon is in the table', () => {
  const functions = Object.entries(binding.native).filter(([, value]) => typeof value === 'function');
  expect(Object.keys(parameters).sort()).toEqual(functions.map(([name]) => name).sort());
});

describe.each(Object.entries(parameters).filter(([, list]) => list.length > 0))('%s', (name, list) => {
  test('refuses every wrong argument with a typed error', () => {
    let count = 0;
    list.forEach((parameter, index) => {
      for (const [value, code] of bad(parameter)) {
        const values = list.map((each, i) => (i === index ? value : good(each)));
        expect([`argument ${index}`, show(value), codeOf(name, values)]).toEqual([
          `argument ${index}`,
          show(value),
          code,
        ]);
        count++;
      }
    });
    expect(count).toBeGreaterThan(0);
  });

  test('refuses a call without arguments', () => {
    const first = list[0]!;
    const lenient = 'string' in first && first.orNull === true;
    expect(codeOf(name, [])).toBe(type);
    expect(lenient ? type : codeOf(name, [undefined])).toBe(type);
  });
});

/** Paths of all properties that a function reads from its arguments. */
function* properties(parameter: Parameter, path: string[] = []): Generator<string[]> {
  if (!('object' in parameter)) return;
  for (const [name, each] of Object.entries(parameter.object)) {
    yield [...path, name];
    yield* properties(each, [...path, name]);
  }
}

function withGetter(value: unknown, [name, ...rest]: string[], get: () => unknown): object {
  const copy = { ...(value as Record<string, unknown>) };
  if (rest.length > 0) return { ...copy, [name!]: withGetter(copy[name!], rest, get) };
  return Object.defineProperty(copy, name!, { get, enumerable: true });
}

const hostile = Object.entries(parameters).flatMap(([name, list]) =>
  list.flatMap((parameter, index) =>
    [...properties(parameter)].map((path) => ({ name, list, index, path, title: path.join('.') })),
  ),
);

describe.each(hostile)('a getter $title that $name runs', ({ name, list, index, path }) => {
  test('may throw, and the caller gets what it threw', () => {
    const thrown = new Error('from the getter');
    const values = list.map((each, i) =>
      i === index
        ? withGetter(good(each), path, () => {
            throw thrown;
          })
        : good(each),
    );
    expect(codeOf(name, values)).toBe(thrown);
  });
});

test('a getter that closes the object which the call is about makes it fail', async () => {
  const objects = makeObjects();
  const { native } = binding;
  let closing: Promise<void> | undefined;
  const attributes = {
    get state() {
      closing = native.destroyQueuePair(objects.QueuePair);
      return 1;
    },
  };
  expect(codeOf('modifyQueuePair', [objects.QueuePair, attributes])).toBe(stale);
  await closing;
  let closingId: Promise<void> | undefined;
  const destination = {
    address: siw.address,
    get port() {
      closingId = native.destroyId(objects.CmId);
      return 1;
    },
  };
  expect(codeOf('resolveAddress', [objects.CmId, null, destination, 100])).toBe(stale);
  await closingId;
  await native.destroySharedReceiveQueue(objects.SharedReceiveQueue);
  native.destroyAddressHandle(objects.AddressHandle);
  native.deallocateMemoryWindow(objects.MemoryWindow);
  await native.deregisterMemory(objects.MemoryRegion);
  await native.destroyCompletionQueue(objects.CompletionQueue);
  native.destroyCompletionChannel(objects.CompletionChannel);
  native.deallocatePd(objects.ProtectionDomain);
  native.closeDevice(objects.Device);
  await native.destroyEventChannel(objects.EventChannel);
});

test('the addon is initialised once', () => {
  const hooks = Object.fromEntries(
    ['createError', 'onCompletions', 'onCmEvent', 'onAsyncEvent'].map((name) => [name, () => {}]),
  );
  expect(codeOf('initialize', [hooks])).toBe('ERR_RDMA_INITIALIZED');
  expect(codeOf('initialize', [{ ...hooks, onCmEvent: 1 }])).toBe(type);
});

test('private data that is too long for the field is refused', () => {
  const connection = {
    responderResources: 1,
    initiatorDepth: 1,
    flowControl: 0,
    retryCount: 7,
    rnrRetryCount: 7,
    queuePair: 0,
  };
  for (const name of ['connect', 'accept']) {
    expect(codeOf(name, [open.CmId, { ...connection, privateData: new Uint8Array(256) }])).toBe('EMSGSIZE');
  }
  expect(codeOf('reject', [open.CmId, new Uint8Array(256)])).toBe('EMSGSIZE');
});

test('an address that is none is refused', () => {
  for (const text of ['', 'localhost', '10.77.0.256', 'fe80::1%nosuchlink', '🎈']) {
    expect(codeOf('bindAddress', [open.CmId, text, 1])).toBe('EINVAL');
    expect(codeOf('resolveAddress', [open.CmId, null, { address: text, port: 1 }, 100])).toBe('EINVAL');
  }
});

test('parents with children are busy', () => {
  expect(codeOf('deallocatePd', [open.ProtectionDomain])).toBe('EBUSY');
  expect(codeOf('destroyCompletionQueue', [open.CompletionQueue])).toBe('EBUSY');
  expect(codeOf('destroyCompletionChannel', [open.CompletionChannel])).toBe('EBUSY');
});

test('a size that no host has is refused', async () => {
  expect(codeOf('allocateMemory', [open.ProtectionDomain, 2 ** 40, 1, false])).toBe('ENOMEM');
  const { native } = binding;
  await expect(native.allocateMemoryAsync(open.ProtectionDomain, 2 ** 40, 1, false)).rejects.toMatchObject({
    code: 'ENOMEM',
  });
  expect(codeOf('createCompletionQueue', [open.Device, 0x7fff_ffff, 0, 0])).toBe('EINVAL');
});

test('ids with every port space are made or refused, and destroyed', async () => {
  const { native } = binding;
  for (const portSpace of [0, 1, 2, 0x0106, 0x0111, 0x013f, 0xffff]) {
    const code = await Promise.resolve()
      .then(() => native.createId(open.EventChannel, portSpace))
      .then((id) => native.destroyId(id))
      .then(
        () => 'made',
        (error: { code: string }) => error.code,
      );
    expect(code).toMatch(/^(made|E[A-Z]+)$/);
  }
});
