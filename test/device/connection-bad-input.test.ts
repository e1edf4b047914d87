import * as rdma from 'node-rdma';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { siw } from '../support/devices.js';

/** Values of every type. A row names those that a function does take. */
const values: readonly (readonly [name: string, value: unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['true', true],
  ['0', 0],
  ['-1', -1],
  ['1.5', 1.5],
  ['NaN', Number.NaN],
  ['a number beyond all', 2 ** 53],
  ['a bigint', 1n],
  ['a string', 'string'],
  ['a string with a null byte', 'a\0b'],
  ['a symbol', Symbol('symbol')],
  ['an object', {}],
  ['an object whose getters throw', hostile()],
  ['an array', [1]],
  ['a function', () => {}],
  ['an ArrayBuffer', new ArrayBuffer(8)],
  ['a Float64Array', new Float64Array(1)],
  ['a Uint8Array', new Uint8Array(8)],
  ['a Uint8Array without memory', detached()],
];

const named = new Map(values);
const everything = [...named.keys()];
const but = (...taken: string[]) => everything.filter((name) => !taken.includes(name));

/** Options without any option. */
const objects = [
  'an object',
  'an ArrayBuffer',
  'a Float64Array',
  'a Uint8Array',
  'a Uint8Array without memory',
];

/** And where no option may be misspelt: numbers are the names of a view's elements. */
const optionless = objects.filter((name) => name !== 'a Float64Array' && name !== 'a Uint8Array');

const host = siw.address;

function hostile(): object {
  const thrower = () => {
    throw Object.assign(new Error('a getter of the test'), { code: 'ERR_OF_A_GETTER' });
  };
  return new Proxy({}, { get: thrower, has: thrower, ownKeys: thrower });
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

let server: rdma.Server;
let client: rdma.Connection;
let accepted: rdma.Connection;
let remote: rdma.RemoteMemory;

beforeAll(async () => {
  server = rdma.createServer({});
  await server.listen({ host: siw.address });
  const connected = new Promise<rdma.Connection>((resolve) => server.once('connection', resolve));
  client = rdma.connect({ host: siw.address, port: server.address()!.port, peerToPeer: true });
  await client.ready;
  accepted = await connected;
  remote = (await accepted.allocate(4096, { access: ['remote-read', 'remote-write'] })).remote();
});

afterAll(async () => {
  await client.close();
  await server.close();
});

type Call = (value: never) => unknown;

/** Each public function with one argument left open, and the values that it must refuse there. */
const rows: readonly (readonly [name: string, call: Call, refused: readonly string[]])[] = [
  ['connect(options)', (v) => rdma.connect(v), everything],
  ['connect({ host })', (host) => rdma.connect({ host, port: 1 }), but('undefined', 'a string')],
  ['connect({ port })', (port) => rdma.connect({ host, port }), everything],
  [
    'connect({ peerToPeer })',
    (peerToPeer) => rdma.connect({ host, port: 1, peerToPeer }),
    but('undefined', 'true', 'an object'),
  ],
  [
    'connect({ privateData })',
    (privateData) => rdma.connect({ host, port: 1, privateData }),
    but('undefined', 'a Uint8Array', 'a Uint8Array without memory'),
  ],
  ['connect({ signal })', (signal) => rdma.connect({ host, port: 1, signal }), but('undefined')],
  ['connect({ keepAlive })', (keepAlive) => rdma.connect({ host, port: 1, keepAlive }), but('undefined')],
  ['connect({ sendDepth })', (sendDepth) => rdma.connect({ host, port: 1, sendDepth }), but('undefined')],
  ['createServer(options)', (v) => rdma.createServer(v), but('undefined', 'a function', ...optionless)],
  [
    'createServer(undefined, onConnection)',
    (v) => rdma.createServer(undefined, v),
    but('undefined', 'a function'),
  ],
  [
    'createServer({ maxConnections })',
    (maxConnections) => rdma.createServer({ maxConnections }),
    but('undefined', '0'),
  ],
  ['server.listen(options)', (v) => rdma.createServer().listen(v), but('undefined', ...optionless)],
  ['capabilities(name)', (v) => rdma.capabilities(v), everything],
  ['Device.open(name)', (v) => rdma.Device.open(v), everything],
  ['connection.send(data)', (v) => client.send(v), but('a Uint8Array', 'a Uint8Array without memory')],
  ['connection.send(data, options)', (v) => client.send(new Uint8Array(1), v), but('undefined', ...objects)],
  ['connection.trySend(data)', (v) => client.trySend(v), but('a Uint8Array', 'a Uint8Array without memory')],
  ['connection.write(remote, data)', (v) => client.write(v, new Uint8Array(1)), everything],
  [
    'connection.write(remote, data), its data',
    (v) => client.write(remote, v),
    but('a Uint8Array', 'a Uint8Array without memory'),
  ],
  ['connection.read(remote, length)', (v) => client.read(v, 1), everything],
  ['connection.read(remote, length), its length', (v) => client.read(remote, v), but('undefined', '0')],
  ['connection.receive({ signal })', (signal) => client.receive({ signal }), but('undefined')],
  ['connection.receive({ timeout })', (timeout) => client.receive({ timeout }), but('undefined')],
  ['connection.allocate(length)', (v) => client.allocate(v), everything],
  ['connection.allocate(length, { access })', (access) => client.allocate(1, { access }), but('undefined')],
  ['connection.register(memory)', (v) => client.register(v), but('an ArrayBuffer', 'a Uint8Array')],
  ['connection.close({ timeout })', (timeout) => client.close({ timeout }), but('undefined', '0')],
  ['new RemoteMemory(address)', (v) => new rdma.RemoteMemory(v, 1, 1), but('a bigint')],
  ['new RemoteMemory(address, rkey)', (v) => new rdma.RemoteMemory(1n, v, 1), but('0')],
  ['new RemoteMemory(address, rkey, length)', (v) => new rdma.RemoteMemory(1n, 1, v), but('0')],
  ['RemoteMemory.fromBytes(bytes)', (v) => rdma.RemoteMemory.fromBytes(v), everything],
  ['RemoteMemory.fromJSON(json)', (v) => rdma.RemoteMemory.fromJSON(v), everything],
  ['remote.slice(offset)', (v) => remote.slice(v), but('0')],
  ['remote.slice(0, length)', (v) => remote.slice(0, v), but('undefined', '0')],
];

/** Functions that take no argument, or none that could be wrong. */
const withoutArguments = [
  'Connection.destroy',
  'Connection.leases',
  'Connection.ref',
  'Connection.releaseSends',
  'Connection.unref',
  'ConnectionRequest.abandon',
  'ConnectionRequest.accept',
  'ConnectionRequest.reject',
  'RemoteMemory.toBytes',
  'RemoteMemory.toJSON',
  'Server.acceptRequest',
  'Server.address',
  'Server.close',
  'Server.ref',
  'Server.requestAnswered',
  'Server.unref',
];

function methodsOf(name: string, prototype: object): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([key, { value }]) => key !== 'constructor' && typeof value === 'function')
    .map(([key]) => `${name}.${key}`);
}

describe('every public function', () => {
  test('has a row here', () => {
    const classes = {
      Connection: rdma.Connection,
      ConnectionRequest: rdma.ConnectionRequest,
      Server: rdma.Server,
      RemoteMemory: rdma.RemoteMemory,
    };
    const methods = Object.entries(classes).flatMap(([name, { prototype }]) => methodsOf(name, prototype));
    const prefixes = { 'connection.': 'Connection.', 'server.': 'Server.', 'remote.': 'RemoteMemory.' };
    const covered = rows.map(([name]) => {
      const [method] = name.split('(');
      const found = Object.entries(prefixes).find(([prefix]) => method!.startsWith(prefix));
      return found === undefined ? method : found[1] + method!.slice(found[0].length);
    });
    expect(
      methods.filter((method) => !covered.includes(method) && !withoutArguments.includes(method)),
    ).toEqual([]);
  });

  describe.each(rows)('%s', (_, call, refused) => {
    test.each(refused)('refuses %s with a typed error', async (name) => {
      let error: unknown;
      try {
        const result = await call(named.get(name) as never);
        if (result instanceof rdma.Connection) await result.closed;
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(Error);
      expect((error as { code?: string }).code).toMatch(/^E[A-Z_]+$/);
    });
  });

  test('of a request refuses what is no private data, and no options, and goes on', async () => {
    const asked = rdma.createServer({});
    await asked.listen({ host: siw.address });
    const requested = new Promise<rdma.ConnectionRequest>((resolve) => asked.once('request', resolve));
    const asking = rdma.connect({ host: siw.address, port: asked.address()!.port });
    const request = await requested;
    for (const name of but('undefined', 'a Uint8Array', 'a Uint8Array without memory')) {
      expect(() => request.reject(named.get(name) as never), name).toThrow();
    }
    for (const name of ['null', '0', 'a string', 'a symbol', 'an array', 'an object whose getters throw']) {
      expect(() => request.accept(named.get(name) as never), name).toThrow();
    }
    request.reject(Buffer.from('no'));
    expect(() => request.accept()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_REQUEST_ANSWERED' }));
    await expect(asking.established).rejects.toMatchObject({ code: 'ERR_RDMA_REJECTED' });
    await asked.close();
  });

  test('has left the connection as it was', async () => {
    await client.send(Buffer.from('still here'));
    let message: Buffer | null = null;
    do message = await accepted.receive();
    while (message !== null && message.toString() !== 'still here');
    expect(message?.toString()).toBe('still here');
  });
});
