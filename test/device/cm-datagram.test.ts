import { once } from 'node:events';
import { type CmEvent, CmId, EventChannel, type PortSpace } from 'node-rdma/cm';
import { CompletionQueue, Device, ProtectionDomain } from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rxe, siw } from '../support/devices.js';
import { Endpoint } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });
const bytes = (length: number) => Uint8Array.from({ length }, (_, i) => i + 1);
/** `RDMA_UDP_QKEY` */
const qkey = 0x0123_4567;

let channel: EventChannel;

beforeEach(() => {
  channel = new EventChannel();
});

afterEach(() => channel.close());

function listen(portSpace: PortSpace, address = rxe.address): CmId {
  const listener = new CmId(channel, { portSpace });
  listener.bind({ address, port: 0 });
  listener.listen();
  return listener;
}

async function resolve(listener: CmId): Promise<Endpoint> {
  const id = new CmId(channel, { portSpace: listener.portSpace });
  const { localAddress: address, localPort: port } = listener.info;
  await id.resolveAddress({ address, port });
  await id.resolveRoute();
  return new Endpoint(id);
}

describe('in the port space of datagrams on rxe', () => {
  test('an answered request says how datagrams reach the one who answered', async () => {
    const listener = listen('UDP');
    const requested = once(listener, 'connect-request') as Promise<[CmEvent, CmId]>;
    const active = await resolve(listener);
    const established = once(active.id, 'established') as Promise<[CmEvent]>;
    await active.id.connect({ privateData: bytes(180) });
    const [request, id] = await requested;
    expect(request.privateData).toEqual(bytes(180));
    expect(request.datagram).toBeUndefined();
    expect(id.portSpace).toBe('UDP');
    const passive = new Endpoint(id);
    id.accept({ privateData: bytes(136) });
    const [event] = await established;
    expect(event.status).toBe(0);
    expect(event.reason).toBeNull();
    expect(event.privateData).toEqual(bytes(136));
    expect(event.datagram).toMatchObject({
      queuePairNumber: passive.queuePair.number,
      qkey,
      addressVector: {
        portNumber: 1,
        gid: new Uint8Array([...new Array(10).fill(0), 255, 255, 10, 78, 0, 1]),
      },
    });
    await active.close();
    await passive.close();
  });

  test('a queue pair is of the kind of the port space, and ready to send', async () => {
    const active = await resolve(listen('UDP'));
    expect(active.queuePair.query().state).toBe('RTS');
    const device = Device.open(active.device.name);
    const pd = new ProtectionDomain(device);
    const cq = new CompletionQueue(device, { entries: 4 });
    const options = { sendCompletionQueue: cq, receiveCompletionQueue: cq, type: 'RC' } as const;
    const other = new CmId(channel, { portSpace: 'UDP' });
    await other.resolveAddress({ address: rxe.address, port: 1 });
    expect(() => other.createQueuePair(pd, options)).toThrow(withCode('EINVAL'));
    await active.close();
    await device.close();
  });

  test('a rejection says so, with its private data', async () => {
    const listener = listen('UDP');
    const requested = once(listener, 'connect-request') as Promise<[CmEvent, CmId]>;
    const active = await resolve(listener);
    const answered = once(active.id, 'unreachable') as Promise<[CmEvent]>;
    await active.id.connect();
    const [, id] = await requested;
    id.reject(bytes(136));
    const [event] = await answered;
    expect(event).toMatchObject({ status: 2, reason: 'REJECT', privateData: bytes(136) });
    expect(event.datagram).toBeUndefined();
    await active.close();
  });

  test('a port that nobody listens on is unreachable', async () => {
    const listener = listen('UDP');
    const active = await resolve(listener);
    await listener.close();
    const answered = once(active.id, 'unreachable') as Promise<[CmEvent]>;
    await active.id.connect();
    expect((await answered)[0]).toMatchObject({ status: 1, reason: 'UNSUPPORTED' });
    await active.close();
  });

  test('too much private data is refused', async () => {
    const active = await resolve(listen('UDP'));
    await expect(active.id.connect({ privateData: bytes(181) })).rejects.toMatchObject({ code: 'EINVAL' });
    await active.close();
  });

  test('the ports of connections are not those of datagrams', async () => {
    const listener = listen('UDP');
    const other = new CmId(channel);
    other.bind({ address: rxe.address, port: listener.info.localPort });
    other.listen();
    expect(other.info.localPort).toBe(listener.info.localPort);
  });
});

describe("in InfiniBand's own port space on rxe", () => {
  test('an id connects as in that of TCP', async () => {
    const listener = listen('IB');
    const requested = once(listener, 'connect-request') as Promise<[CmEvent, CmId]>;
    const active = await resolve(listener);
    const established = once(active.id, 'established');
    await active.id.connect();
    const [, id] = await requested;
    expect(id.portSpace).toBe('IB');
    const passive = new Endpoint(id);
    id.accept();
    await established;
    const received = passive.receive(64);
    await active.send(5);
    expect(await received).toMatchObject({ byteLength: 5 });
    await active.close();
    await passive.close();
  });
});

test.each([siw, rxe])('IPoIB has no listeners where there is no InfiniBand', ({ address }) => {
  expect(() => listen('IPOIB', address)).toThrow(withCode('EINVAL'));
});

test('siw has no datagrams', async () => {
  expect(() => listen('UDP', siw.address)).toThrow(withCode('ENOTSUP'));
  const id = new CmId(channel, { portSpace: 'UDP' });
  await id.resolveAddress({ address: siw.address, port: 1 });
  await id.resolveRoute();
  const device = Device.open(siw.device);
  const pd = new ProtectionDomain(device);
  const cq = new CompletionQueue(device, { entries: 4 });
  expect(() => id.createQueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq })).toThrow(
    withCode('ENOTSUP'),
  );
  await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
  await device.close();
});
