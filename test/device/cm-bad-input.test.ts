import * as cm from 'node-rdma/cm';
import { CmId, EventChannel, getAddressInfo } from 'node-rdma/cm';
import { CompletionQueue, Device, ProtectionDomain } from 'node-rdma/verbs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rxe, siw } from '../support/devices.js';
import { Listener, resolve } from '../support/verbs/endpoint.js';

const type = 'ERR_INVALID_ARG_TYPE';
const value = 'ERR_INVALID_ARG_VALUE';
const range = 'ERR_OUT_OF_RANGE';

const primitives = [true, 1, 1n, 'text', Symbol('symbol')];
const noObject = [null, ...primitives];
const nothing = [undefined, ...noObject, {}, []];
const outside = (min: number, max: number) => [min - 1, max + 1, min + 0.5, Number.NaN, Infinity];

let channel: EventChannel;
let id: CmId;
const here = { address: siw.address, port: 1 };

beforeAll(() => {
  channel = new EventChannel();
  id = new CmId(channel);
});

afterAll(() => channel.close());

type Row = readonly [code: string, values: readonly unknown[], call: (value: never) => unknown];

const rows: Record<string, Row> = {
  'new CmId channel': [type, nothing, (bad) => new CmId(bad)],
  'new CmId options': [type, [...noObject, []], (bad) => new CmId(channel, bad)],
  'new CmId portSpace': [type, [1, {}, true], (portSpace) => new CmId(channel, { portSpace })],
  'new CmId portSpace unknown': [
    value,
    ['', 'tcp', '__proto__'],
    (portSpace) => new CmId(channel, { portSpace }),
  ],
  'bind address': [type, [undefined, ...noObject], (bad) => id.bind(bad)],
  'bind address.address': [type, [undefined, null, 1, {}], (address) => id.bind({ address, port: 1 })],
  'bind address.address that is none': [
    value,
    ['', 'localhost', '1.2.3', '256.1.1.1', '10.77.0.1\0', 'x'.repeat(100_000)],
    (address) => id.bind({ address, port: 1 }),
  ],
  'bind address.port': [type, [undefined, null, '1', 1n], (port) => id.bind({ address: siw.address, port })],
  'bind address.port out of range': [
    range,
    outside(0, 65_535),
    (port) => id.bind({ address: siw.address, port }),
  ],
  'bind an address of nobody': [
    'EADDRNOTAVAIL|ENODEV',
    ['192.0.2.1'],
    (address) => id.bind({ address, port: 1 }),
  ],
  'bind a scope of nobody': ['EINVAL', ['fe80::1%nosuchlink'], (address) => id.bind({ address, port: 1 })],
  'setOptions options': [type, [undefined, ...noObject, []], (bad) => id.setOptions(bad)],
  'setOptions typeOfService': [type, [null, '1', true], (typeOfService) => id.setOptions({ typeOfService })],
  'setOptions typeOfService out of range': [
    range,
    outside(0, 255),
    (typeOfService) => id.setOptions({ typeOfService }),
  ],
  'setOptions reuseAddress': [type, [null, 0, 1, 'true'], (reuseAddress) => id.setOptions({ reuseAddress })],
  'setOptions addressFamilyOnly': [
    type,
    [null, 0, 1, 'true'],
    (addressFamilyOnly) => id.setOptions({ addressFamilyOnly }),
  ],
  'setOptions acknowledgeTimeout': [
    range,
    outside(0, 31),
    (acknowledgeTimeout) => id.setOptions({ acknowledgeTimeout }),
  ],
  'migrate channel': [type, nothing, (bad) => id.migrate(bad)],
  'queuePairAttributes state': [type, [undefined, null, 1, {}], (bad) => id.queuePairAttributes(bad)],
  'queuePairAttributes state unknown': [value, ['', 'init', 'SQD'], (bad) => id.queuePairAttributes(bad)],
  'notify event': [type, [undefined, null, 4, {}], (bad) => id.notify(bad)],
  'notify event unknown': [value, ['', 'established'], (bad) => id.notify(bad)],
  'listen backlog': [type, [null, '1', {}], (bad) => id.listen(bad)],
  'listen backlog out of range': [range, outside(0, 0x7fff_ffff), (bad) => id.listen(bad)],
  'accept parameters': [type, [...noObject, []], (bad) => id.accept(bad)],
  'accept responderResources': [range, outside(0, 255), (bad) => id.accept({ responderResources: bad })],
  'accept initiatorDepth': [range, outside(0, 255), (bad) => id.accept({ initiatorDepth: bad })],
  'accept retryCount': [range, outside(0, 7), (bad) => id.accept({ retryCount: bad })],
  'accept rnrRetryCount': [range, outside(0, 7), (bad) => id.accept({ rnrRetryCount: bad })],
  'accept privateData': [
    type,
    [...noObject, {}, [], new ArrayBuffer(4), new Uint16Array(4)],
    (privateData) => id.accept({ privateData }),
  ],
  'accept privateData too long': [range, [new Uint8Array(256)], (privateData) => id.accept({ privateData })],
  'accept queuePair': [type, [null, 1, {}], (queuePair) => id.accept({ queuePair })],
  'reject privateData': [type, [...noObject, {}, []], (bad) => id.reject(bad)],
  'reject privateData too long': [range, [new Uint8Array(256)], (bad) => id.reject(bad)],
  'createQueuePair pd': [type, nothing, (bad) => id.createQueuePair(bad, {} as never)],
};

const promised: Record<string, Row> = {
  'resolveAddress destination': [type, [undefined, ...noObject], (bad) => id.resolveAddress(bad)],
  'resolveAddress options': [type, [...noObject, []], (bad) => id.resolveAddress(here, bad)],
  'resolveAddress source': [type, noObject, (source) => id.resolveAddress(here, { source })],
  'resolveAddress timeout': [
    range,
    outside(1, 0x7fff_ffff),
    (timeout) => id.resolveAddress(here, { timeout }),
  ],
  'resolveRoute options': [type, [...noObject, []], (bad) => id.resolveRoute(bad)],
  'resolveRoute timeout': [range, outside(1, 0x7fff_ffff), (timeout) => id.resolveRoute({ timeout })],
  'connect parameters': [type, [...noObject, []], (bad) => id.connect(bad)],
  'connect privateData': [type, [...noObject, {}, []], (privateData) => id.connect({ privateData })],
  'connect privateData too long': [
    range,
    [new Uint8Array(256)],
    (privateData) => id.connect({ privateData }),
  ],
  'connect queuePair': [type, [null, 1, {}], (queuePair) => id.connect({ queuePair })],
  'joinMulticast group': [type, [undefined, null, 1, {}], (bad) => id.joinMulticast(bad)],
  'joinMulticast group that is none': [
    value,
    ['', 'all-systems.mcast.net', '239.1.2', '239.1.2.3\0'],
    (bad) => id.joinMulticast(bad),
  ],
  'joinMulticast options': [type, [...noObject, []], (bad) => id.joinMulticast('239.1.2.3', bad)],
  'joinMulticast sendOnly': [
    type,
    [null, 0, 1, 'true'],
    (sendOnly) => id.joinMulticast('239.1.2.3', { sendOnly }),
  ],
  'getAddressInfo family': [value, [0, 5, '4', null], (family) => getAddressInfo('::1', null, { family })],
  'getAddressInfo portSpace': [
    type,
    [null, 1, {}],
    (portSpace) => getAddressInfo('::1', null, { portSpace }),
  ],
  'getAddressInfo type': [value, ['', 'rc', 'XRC'], (bad) => getAddressInfo('::1', null, { type: bad })],
  'getAddressInfo source': [type, noObject, (source) => getAddressInfo('::1', null, { source })],
  'getAddressInfo destination': [
    value,
    ['', 'localhost'],
    (address) => getAddressInfo(null, null, { destination: { address, port: 1 } }),
  ],
  'getAddressInfo node': [type, [undefined, 1, {}], (bad) => getAddressInfo(bad, null)],
  'getAddressInfo service': [type, [undefined, 1, {}], (bad) => getAddressInfo(null, bad)],
  'getAddressInfo options': [type, [...noObject, []], (bad) => getAddressInfo('localhost', null, bad)],
  'getAddressInfo of nothing': ['EINVAL', [null], (bad) => getAddressInfo(bad, null)],
  'getAddressInfo of a name that is not numeric': [
    'ENOENT',
    ['nosuchhost.invalid'],
    (bad) => getAddressInfo(bad, null, { numeric: true }),
  ],
};

const matching = (code: string) => expect.objectContaining({ code: expect.stringMatching(`^(${code})$`) });

test.each(Object.entries(rows))('%s is refused', (_, [code, values, call]) => {
  for (const bad of values) expect(() => call(bad as never)).toThrow(matching(code));
  expect(values.length).toBeGreaterThan(0);
});

test.each(Object.entries(promised))('%s is refused', async (_, [code, values, call]) => {
  for (const bad of values) await expect(call(bad as never)).rejects.toEqual(matching(code));
  expect(values.length).toBeGreaterThan(0);
});

test('every method of an id is in the tables, or takes no input', () => {
  const methods = Object.getOwnPropertyNames(CmId.prototype);
  const withoutInput = [
    'constructor',
    'channel',
    'establish',
    'disconnect',
    'device',
    'info',
    'closed',
    'close',
  ];
  const inTables = new Set(
    [...Object.keys(rows), ...Object.keys(promised)].map((name) => name.split(' ')[0]),
  );
  expect(methods.filter((name) => !withoutInput.includes(name) && !inTables.has(name))).toEqual([]);
  expect(Object.keys(cm).sort()).toEqual([
    'CmId',
    'EventChannel',
    'MulticastGroup',
    'RdmaError',
    'eventError',
    'getAddressInfo',
    'getDevices',
  ]);
});

test('the options of a queue pair are checked on an id as well', async () => {
  const device = Device.open(siw.device);
  const pd = new ProtectionDomain(device);
  for (const bad of [undefined, ...noObject, []]) {
    expect(() => id.createQueuePair(pd, bad as never)).toThrow(matching(type));
  }
  await device.close();
});

test.each([
  [siw, rxe],
  [rxe, siw],
] as const)('a queue pair does not go on an id of another device', async (near, far) => {
  const listener = new Listener(near);
  const resolved = await resolve(listener.channel, listener.destination);
  const other = Device.open(far.device);
  const pd = new ProtectionDomain(other);
  const cq = new CompletionQueue(other, { entries: 4 });
  const options = { sendCompletionQueue: cq, receiveCompletionQueue: cq };
  expect(() => resolved.createQueuePair(pd, options)).toThrow(matching('EINVAL'));
  await other.close();
  await listener.close();
});
