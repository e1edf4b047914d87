import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { type CmAddress, CmId, EventChannel, getAddressInfo, getDevices } from 'node-rdma/cm';
import { Device } from 'node-rdma/verbs';
import { describe, expect, test } from 'vitest';
import { type GuestDevice, rxe, siw } from '../support/devices.js';
import { Endpoint, Listener, resolve } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });

/** The link-local address of a network device, with its scope. */
function linkLocal(netdev: string): string {
  const found = networkInterfaces()[netdev]?.find(({ address }) => address.startsWith('fe80:'));
  if (found === undefined) throw new Error(`${netdev} has no link-local address`);
  return `${found.address}%${netdev}`;
}

test('rdma_cm knows the devices of the guest', () => {
  expect(getDevices().sort()).toEqual(['rxe0', 'rxe1', 'siw0']);
  expect(
    Device.list()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(getDevices().sort());
});

test('a device of RoCE has its addresses as GIDs', async () => {
  const device = Device.open(rxe.device);
  const gids = [0, 1, 2].map((index) => Buffer.from(device.queryGid(1, index)).toString('hex'));
  expect(gids).toContain('00000000000000000000ffff0a4e0001');
  await device.close();
});

describe('an address is looked up', () => {
  test('of a numeric host, to connect to', async () => {
    expect(await getAddressInfo(siw.address, '7471', { numeric: true })).toEqual([
      {
        passive: false,
        family: 4,
        portSpace: 'TCP',
        type: 'RC',
        sourceAddress: null,
        destinationAddress: { address: siw.address, port: 7471 },
        sourceName: null,
        destinationName: null,
        route: null,
        connect: null,
      },
    ]);
  });

  test('to bind to, where no host is every address', async () => {
    const [found] = await getAddressInfo(null, '7471', { passive: true, family: 6 });
    expect(found).toMatchObject({
      passive: true,
      family: 6,
      sourceAddress: { address: '::', port: 7471 },
      destinationAddress: null,
    });
  });

  test('for datagrams', async () => {
    const [found] = await getAddressInfo('fd00:78::1', '7174', { portSpace: 'UDP', type: 'UD' });
    expect(found).toMatchObject({
      family: 6,
      portSpace: 'UDP',
      type: 'UD',
      destinationAddress: { address: 'fd00:78::1', port: 7174 },
    });
  });

  test('with the address to connect from', async () => {
    const source = { address: rxe.address, port: 0 };
    const destination = { address: '10.78.0.2', port: 7471 };
    const [found] = await getAddressInfo(null, null, { source, destination });
    expect(found).toMatchObject({ sourceAddress: source, destinationAddress: destination });
  });

  test('of a name in one family', async () => {
    const [found] = await getAddressInfo('localhost', '1', { family: 4 });
    expect(found?.destinationAddress).toEqual({ address: '127.0.0.1', port: 1 });
    await expect(getAddressInfo(siw.address, '1', { family: 6 })).rejects.toMatchObject({
      syscall: 'rdma_getaddrinfo',
    });
  });
});

interface Route {
  device: GuestDevice;
  address: () => string;
  /** Where it is connected from; default: the same. */
  from?: string;
  /** What the passive side hears of a scope; default: all of it. */
  heard?: (address: string) => string;
}

// rxe's second device is where the guest routes its traffic from, so that it takes the wire. RoCE carries no scope.
const routes: Record<string, Route> = {
  'siw, IPv4': { device: siw, address: () => '10.77.0.1' },
  'siw, IPv6': { device: siw, address: () => 'fd00:77::1' },
  'siw, link-local': { device: siw, address: () => linkLocal('wire0') },
  'rxe, IPv4': { device: rxe, address: () => '10.78.0.1', from: '10.78.0.2' },
  'rxe, IPv6': { device: rxe, address: () => 'fd00:78::1', from: 'fd00:78::2' },
  'rxe, link-local': {
    device: rxe,
    address: () => linkLocal('wire2'),
    heard: (address) => address.replace(/%.*/, ''),
  },
};

test.each(Object.entries(routes))(
  'both ends of %s know their own and the other address',
  async (_, route) => {
    const address = route.address();
    const { device, from = address, heard = (text) => text } = route;
    const listener = new Listener({ ...device, address });
    expect(listener.id.info).toMatchObject({ localAddress: address, localPort: expect.any(Number) });
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const established = once(active.id, 'established');
    await active.id.connect();
    const { id } = await requested;
    const passive = new Endpoint(id);
    id.accept();
    await established;
    expect(active.id.info).toMatchObject({
      localAddress: from,
      remoteAddress: address,
      remotePort: listener.destination.port,
      remoteFamily: address.includes(':') ? 6 : 4,
    });
    expect(id.info).toMatchObject({
      localAddress: heard(address),
      localPort: listener.destination.port,
      remoteAddress: heard(from),
    });
    expect(id.device?.name).toBe(device.device);
    await active.close();
    await passive.close();
    await listener.close();
  },
);

test('a link-local address without its scope leads nowhere', async () => {
  const channel = new EventChannel();
  const id = new CmId(channel);
  const address = { address: 'fe80::1', port: 1 };
  expect(() => id.bind(address)).toThrow(withCode('EINVAL'));
  await expect(id.resolveAddress(address, { timeout: 100 })).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  await channel.close();
});

test.each([
  ['siw', siw, '10.77.0.200'],
  ['rxe', rxe, '10.78.0.200'],
])('%s can be told which address to connect from', async (_, device, nobody) => {
  const channel = new EventChannel();
  const id = new CmId(channel);
  const to = (address: string): CmAddress => ({ address, port: 1 });
  await id.resolveAddress(to(device.address), { source: { address: device.address, port: 0 } });
  expect(id.info.localAddress).toBe(device.address);
  const other = new CmId(channel);
  const wrong = { source: { address: nobody, port: 0 } };
  await expect(other.resolveAddress(to(device.address), wrong)).rejects.toMatchObject({
    code: expect.stringMatching(/^(ENODEV|EADDRNOTAVAIL)$/),
  });
  await channel.close();
});
