import { AddressHandle, CompletionQueue, MemoryWindow, QueuePair, SharedReceiveQueue } from 'node-rdma/verbs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rxe } from '../support/devices.js';
import { HandEndpoint } from '../support/verbs/by-hand.js';

const type = 'ERR_INVALID_ARG_TYPE';
const value = 'ERR_INVALID_ARG_VALUE';
const range = 'ERR_OUT_OF_RANGE';

const noObject = [null, 1, 'text', true, 1n, Symbol('symbol')];
const noInstance = [...noObject, {}, [], undefined];
const notInteger = [null, 'text', true, 1n, {}, []];
const outside = (min: number, max: number) => [min - 1, max + 1, min + 0.5, Number.NaN, Infinity];
const notGid = [1, 'text', {}, [], new ArrayBuffer(16), new Uint16Array(16)];
const notSixteen = [new Uint8Array(0), new Uint8Array(15), new Uint8Array(17)];

let end: HandEndpoint;
let srq: SharedReceiveQueue;
let window: MemoryWindow;
let addressHandle: AddressHandle;

beforeAll(() => {
  end = new HandEndpoint(rxe, { type: 'UD' });
  srq = new SharedReceiveQueue(end.pd);
  window = new MemoryWindow(end.pd);
  addressHandle = new AddressHandle(end.pd, { gid: end.whereabouts.gid, sgidIndex: end.sgidIndex });
});

afterAll(() => end.close());

const handler = { complete() {} };
const source = {
  queuePairNumber: 1,
  sourceLid: 0,
  serviceLevel: 0,
  pathBits: 0,
  pkeyIndex: 0,
  routed: true,
};
const header = new Uint8Array(40);
const queues = () => ({ sendCompletionQueue: end.cq, receiveCompletionQueue: end.cq });

type Row = readonly [code: string, values: readonly unknown[], call: (value: never) => unknown];

/** An integer of an options object: what is none, and what is out of its range. */
function integerRows(
  name: string,
  min: number,
  max: number,
  call: (value: never) => unknown,
): Record<string, Row> {
  return {
    [`${name} that is none`]: [type, notInteger.filter((each) => each !== null), call],
    [`${name} out of range`]: [range, outside(min, max), call],
  };
}

const vector = (fields: object) => new AddressHandle(end.pd, fields);
const modify = (attributes: object) => end.queuePair.modify(attributes);
const send = (destination: object) =>
  end.queuePair.post({ opcode: 'send', destination: destination as never }, handler);
const bind = (binding: object) =>
  end.queuePair.post({ opcode: 'bindMemoryWindow', binding: binding as never }, handler);

const rows: Record<string, Row> = {
  'new SharedReceiveQueue pd': [type, noInstance, (bad) => new SharedReceiveQueue(bad)],
  'new SharedReceiveQueue options': [type, noObject, (bad) => new SharedReceiveQueue(end.pd, bad)],
  ...integerRows('maxRequests', 1, 1 << 20, (maxRequests) => new SharedReceiveQueue(end.pd, { maxRequests })),
  ...integerRows('maxSges', 1, 16, (maxSges) => new SharedReceiveQueue(end.pd, { maxSges })),
  'srq post request': [type, noObject, (bad) => srq.post(bad, handler)],
  'srq post handler': [type, noInstance, (bad) => srq.post({}, bad)],
  'srq post sges': [type, [1, 'text', {}], (sges) => srq.post({ sges }, handler)],
  'srq post sge': [type, [null, {}, 1], (sge) => srq.post({ sges: [sge] }, handler)],
  'srq arm': [type, [...notInteger, undefined], (bad) => srq.arm(bad)],
  'srq arm range': [range, outside(0, 128), (bad) => srq.arm(bad)],
  'sharedReceiveQueue option': [
    type,
    noInstance.filter((each) => each !== undefined),
    (sharedReceiveQueue) => new QueuePair(end.pd, { ...queues(), sharedReceiveQueue }),
  ],
  'new MemoryWindow pd': [type, noInstance, (bad) => new MemoryWindow(bad)],
  'new MemoryWindow options': [type, noObject, (bad) => new MemoryWindow(end.pd, bad)],
  ...integerRows('window type', 1, 2, (bad) => new MemoryWindow(end.pd, { type: bad })),
  'new AddressHandle pd': [type, noInstance, (bad) => new AddressHandle(bad, {})],
  'new AddressHandle vector': [type, [...noObject, undefined], (bad) => new AddressHandle(end.pd, bad)],
  'vector gid': [type, notGid, (gid) => vector({ gid })],
  'vector gid of another length': [range, notSixteen, (gid) => vector({ gid })],
  ...integerRows('vector sgidIndex', 0, 255, (sgidIndex) => vector({ sgidIndex })),
  ...integerRows('vector hopLimit', 0, 255, (hopLimit) => vector({ hopLimit })),
  ...integerRows('vector trafficClass', 0, 255, (trafficClass) => vector({ trafficClass })),
  ...integerRows('vector flowLabel', 0, 0xf_ffff, (flowLabel) => vector({ flowLabel })),
  ...integerRows('vector lid', 0, 0xffff, (lid) => vector({ lid })),
  ...integerRows('vector pathBits', 0, 127, (pathBits) => vector({ pathBits })),
  ...integerRows('vector staticRate', 0, 255, (staticRate) => vector({ staticRate })),
  ...integerRows('vector serviceLevel', 0, 15, (serviceLevel) => vector({ serviceLevel })),
  ...integerRows('vector portNumber', 1, 255, (portNumber) => vector({ portNumber })),
  'replyVector pd': [type, noInstance, (bad) => AddressHandle.replyVector(bad, source, header)],
  'replyVector source': [type, noObject, (bad) => AddressHandle.replyVector(end.pd, bad, header)],
  'replyVector message': [type, notGid, (bad) => AddressHandle.replyVector(end.pd, source, bad)],
  'replyVector message without a header': [
    value,
    [new Uint8Array(0), new Uint8Array(39)],
    (bad) => AddressHandle.replyVector(end.pd, source, bad),
  ],
  'replyVector port': [
    range,
    outside(1, 255),
    (bad) => AddressHandle.replyVector(end.pd, source, header, bad),
  ],
  'post destination': [type, [1, 'text', {}, { addressHandle: {} }], (bad) => send(bad)],
  'post destination queuePairNumber': [
    range,
    outside(0, 0xff_ffff),
    (queuePairNumber) => send({ addressHandle, queuePairNumber, qkey: 1 }),
  ],
  'post destination qkey': [
    range,
    outside(0, 0xffff_ffff),
    (qkey) => send({ addressHandle, queuePairNumber: 1, qkey }),
  ],
  'post binding': [type, [1, 'text', {}, { window: {} }], (bad) => bind(bad)],
  'post binding access': [range, outside(0, 14), (access) => bind({ window, access, rkey: 1 })],
  'post binding rkey': [range, outside(0, 0xffff_ffff), (rkey) => bind({ window, access: 2, rkey })],
  'modify state name': [value, ['', 'rts', 'UNKNOWN'], (state) => modify({ state })],
  'modify currentState': [value, ['', 'rts'], (currentState) => modify({ currentState })],
  'modify pathMtu': [value, [0, 1, 1000, 8192, '1024', null], (pathMtu) => modify({ pathMtu })],
  'modify access': [type, [1, 'remote-read', {}], (access) => modify({ access })],
  'modify access name': [value, [['everything']], (access) => modify({ access })],
  'modify pathMigrationState': [value, ['', 'armed'], (pathMigrationState) => modify({ pathMigrationState })],
  'modify addressHandle': [type, noObject, (addressHandle) => modify({ addressHandle })],
  ...integerRows('modify qkey', 0, 0xffff_ffff, (qkey) => modify({ qkey })),
  ...integerRows('modify rqPsn', 0, 0xff_ffff, (rqPsn) => modify({ rqPsn })),
  ...integerRows('modify timeout', 0, 31, (timeout) => modify({ timeout })),
  ...integerRows('modify retryCount', 0, 7, (retryCount) => modify({ retryCount })),
  'attachMulticast gid': [type, notGid, (gid) => end.queuePair.attachMulticast(gid)],
  'attachMulticast gid of another length': [range, notSixteen, (gid) => end.queuePair.attachMulticast(gid)],
  'attachMulticast lid': [
    range,
    outside(0, 0xffff),
    (lid) => end.queuePair.attachMulticast(end.whereabouts.gid, lid),
  ],
  'detachMulticast gid': [type, notGid, (gid) => end.queuePair.detachMulticast(gid)],
  'resize entries': [range, outside(1, 0x7fff_ffff), (bad) => end.cq.resize(bad)],
  'moderate count': [range, outside(0, 0xffff), (bad) => end.cq.moderate(bad, 1)],
  'moderate period': [range, outside(0, 0xffff), (bad) => end.cq.moderate(1, bad)],
  'completion fields': [
    type,
    [1, 'timestamp', {}],
    (fields) => new CompletionQueue(end.device, { entries: 1, fields }),
  ],
  'reregister access': [type, [1, 'text', {}, null], (bad) => end.memory.reregister(bad)],
  'reregister access name': [value, [['everything']], (bad) => end.memory.reregister(bad)],
  'queryGidEntry port': [range, outside(1, 255), (bad) => end.device.queryGidEntry(bad, 0)],
  'queryGidEntry index': [range, outside(0, 0x7fff_ffff), (bad) => end.device.queryGidEntry(1, bad)],
  'queryPkey port': [range, outside(1, 255), (bad) => end.device.queryPkey(bad, 0)],
  'queryPkey index': [range, outside(0, 0x7fff_ffff), (bad) => end.device.queryPkey(1, bad)],
};

describe.each(Object.entries(rows))('%s', (_, [code, values, call]) => {
  test(`${code} for every wrong value`, () => {
    for (const each of values) {
      expect(() => call(each as never), String(typeof each)).toThrow(expect.objectContaining({ code }));
    }
  });
});

describe('binding a window', () => {
  const good = () => ({ region: end.memory, access: ['remote-read'] as const });
  test.each([
    ['binding', type, noObject, (bad: never) => window.bind(end.queuePair, bad)],
    ['region', type, noInstance, (region: never) => window.bind(end.queuePair, { ...good(), region })],
    [
      'offset',
      range,
      outside(0, 65536),
      (offset: never) => window.bind(end.queuePair, { ...good(), offset }),
    ],
    [
      'length',
      range,
      outside(0, 65536),
      (length: never) => window.bind(end.queuePair, { ...good(), length }),
    ],
    ['access', type, [1, 'text', null], (access: never) => window.bind(end.queuePair, { ...good(), access })],
    [
      'access name',
      value,
      [['window-bind'], ['everything']],
      (access: never) => window.bind(end.queuePair, { ...good(), access }),
    ],
  ] as const)('refuses a wrong %s', async (_, code, values, call) => {
    for (const each of values) await expect(call(each as never)).rejects.toMatchObject({ code });
  });
});
