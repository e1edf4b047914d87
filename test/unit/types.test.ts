import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { typeCheck } from '../support/type-check.js';

const imports = `
  import { type Connection, connect, createServer, type RemoteMemory } from 'node-rdma';
  import { CmId, EventChannel, getAddressInfo, type CmEvent } from 'node-rdma/cm';
  import { CompletionQueue, Device, ProtectionDomain, QueuePair, type WorkCompletion } from 'node-rdma/verbs';
  declare const connection: Connection;
  declare const remote: RemoteMemory;
  declare const channel: EventChannel;
  declare const id: CmId;
  declare const event: CmEvent;
  declare const device: Device;
  declare const pd: ProtectionDomain;
  declare const cq: CompletionQueue;
  declare const queuePair: QueuePair;
  declare const completion: WorkCompletion;
  declare const request: { host: string; port: number };
  const queues = { sendCompletionQueue: cq, receiveCompletionQueue: cq };
  void [connection, remote, channel, id, event, device, pd, queuePair, completion, request, queues];
  void [connect, createServer, getAddressInfo];
`;

/** What a program may write. */
const right: Record<string, string> = {
  'a connection': `await using c = connect({ ...request, peerToPeer: { rtr: 'write', negotiate: 'require' } });
    await c.send(new Uint8Array(4));
    for await (const message of c) console.log(message.toString('hex'));`,
  'a server': `createServer({ peerToPeer: 'require' }, (c) => void c.send(Buffer.from('hello')));`,
  'an id': `await using own = new CmId(channel, { portSpace: 'UDP' });
    own.on('connect-request', (request, from) => from.reject(request.privateData));
    own.setOptions({ typeOfService: 8 });
    const group = await own.joinMulticast('239.1.2.3');
    await group.leave();`,
  'the payload of an event': `const qkey: number | undefined = event.datagram?.qkey; void qkey;`,
  'a queue pair': `const own = new QueuePair(pd, queues);
    void own.submit({ opcode: 'read', sges: [], remote });`,
};

/** What it may not, and the compiler's words for it. */
const wrong: Record<string, readonly [code: string, message: RegExp]> = {
  'an option that is misspelt': [`connect({ ...request, peerToPear: true });`, /'peerToPear' does not exist/],
  'an option of another kind': [`connect({ ...request, sendDepth: '128' });`, /'string' is not assignable/],
  'an option that is undefined': [
    `id.setOptions({ typeOfService: undefined });`,
    /exactOptionalPropertyTypes/,
  ],
  'an unknown way to make ready': [
    `connect({ ...request, peerToPeer: { rtr: 'atomic' } });`,
    /'"atomic"' is not/,
  ],
  'a connection without a port': [`connect({ host: 'localhost' });`, /'port' is missing/],
  'a text as a message': [`void connection.send('text');`, /'string' is not assignable/],
  'an access that there is none of': [
    `void connection.allocate(8, { access: ['remote-execute'] });`,
    /'"remote-execute"' is not assignable/,
  ],
  'an address in place of memory': [
    `void connection.read(remote.address);`,
    /not assignable to .*'RemoteMemory'/,
  ],
  'a server that is told to be polite': [`createServer({ peerToPeer: 'please' });`, /'"please"' is not/],
  'an unknown port space': [`new CmId(channel, { portSpace: 'SCTP' });`, /'"SCTP"' is not assignable/],
  'an event that does not happen': [
    `id.on('conected', () => {});`,
    /not assignable to parameter of type 'never'/,
  ],
  'a handler of the wrong event': [
    `id.on('established', (event: CmEvent, from: CmId) => void from.close());`,
    /not assignable to parameter of type/,
  ],
  'an event that is changed': [`event.status = 0;`, /read-only/],
  'the payload of a datagram that may be none': [`event.datagram.qkey;`, /possibly 'undefined'/],
  'the way of a request that is a text': [
    `id.accept({ privateData: 'text' });`,
    /'string' is not assignable/,
  ],
  'an id on a device': [`new CmId(device);`, /not assignable to parameter of type 'EventChannel'/],
  'a state that librdmacm knows nothing of': [`id.queuePairAttributes('SQD');`, /'"SQD"' is not assignable/],
  'an address of another family': [`void getAddressInfo(null, '1', { family: 5 });`, /'5' is not assignable/],
  'an opcode that there is none of': [
    `void queuePair.submit({ opcode: 'teleport' });`,
    /'"teleport"' is not assignable/,
  ],
  'a Read on an unreliable connection': [
    `const own = new QueuePair(pd, { ...queues, type: 'UC' }); void own.submit({ opcode: 'read', remote });`,
    /'"read"' is not assignable/,
  ],
  'an atomic on an unreliable connection': [
    `const own = new QueuePair(pd, { ...queues, type: 'UC' }); void own.submit({ opcode: 'fetchAndAdd', remote });`,
    /'"fetchAndAdd"' is not assignable/,
  ],
  'a Write as a datagram': [
    `const own = new QueuePair(pd, { ...queues, type: 'UD' }); void own.submit({ opcode: 'write', remote });`,
    /'"write"' is not assignable|not assignable to type '"/,
  ],
  'a datagram to nowhere': [
    `const own = id.createQueuePair(pd, { ...queues, type: 'UD' }); void own.submit({ opcode: 'send' });`,
    /'destination' is missing|not assignable to type '"receive"'/,
  ],
  'a destination where there is a connection': [
    `const own = new QueuePair(pd, { ...queues, type: 'RC' }); void own.submit({ opcode: 'send', destination: 1 });`,
    /'destination' does not exist/,
  ],
  'a number where an atomic takes 64 bits': [
    `void queuePair.submit({ opcode: 'fetchAndAdd', remote, compareAdd: 1 });`,
    /'number' is not assignable to type 'bigint'/,
  ],
  'bytes that are not registered': [
    `void queuePair.submit({ opcode: 'send', sges: [{ region: new Uint8Array(8) }] });`,
    /not assignable to type 'MemoryRegion'|missing the following properties from type 'MemoryRegion'/,
  ],
  'a queue pair without its queues': [`new QueuePair(pd, {});`, /missing the following properties/],
  'a window on a completion that outlives its handler': [
    `const kept: Promise<WorkCompletion> = queuePair.submit({ opcode: 'receive' }); void kept;`,
    /'CompletionResult' is (missing|not assignable)/,
  ],
  'a handler that waits for nothing': [
    `queuePair.post({ opcode: 'send' }, () => {});`,
    /not assignable to parameter of type 'CompletionHandler'/,
  ],
};

let found: Map<string, string[]>;

beforeAll(() => {
  const codes = {
    ...right,
    ...Object.fromEntries(Object.entries(wrong).map(([name, [code]]) => [name, code])),
  };
  found = typeCheck(
    Object.fromEntries(
      Object.entries(codes).map(([name, code]) => [name, `${imports}\n${code}\nexport {};`]),
    ),
  );
});

describe('what is right compiles', () => {
  test.each(Object.keys(right))('%s', (name) => {
    expect(found.get(name)).toEqual([]);
  });
});

describe('what is wrong does not compile', () => {
  test.each(Object.entries(wrong))('%s', (name, [, message]) => {
    expect(found.get(name)).toEqual([expect.stringMatching(message)]);
  });
});

test('no type of the library is any', () => {
  const root = dirname(createRequire(import.meta.url).resolve('node-rdma/package.json'));
  const declarations = readdirSync(`${root}/dist`, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.d.ts'),
  );
  expect(declarations.length).toBeGreaterThan(50);
  const withAny = declarations.filter((path) => {
    const code = readFileSync(`${root}/dist/${path}`, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    return /(?<!\w)any(?!\w)/.test(code.replace(/\/\/.*/g, '').replace(/'[^']*'/g, ''));
  });
  expect(withAny).toEqual([]);
});
