import { once } from 'node:events';
import { type CmEvent, CmId, EventChannel } from 'node-rdma/cm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rxe, siw } from '../support/devices.js';
import { Endpoint } from '../support/verbs/endpoint.js';

/** `RDMA_UDP_QKEY` */
const qkey = 0x0123_4567;
/** The GID that RoCE v2 has for an IPv4 address. */
const mapped = (address: string) =>
  new Uint8Array([...new Array(10).fill(0), 0xff, 0xff, ...address.split('.').map(Number)]);

let channel: EventChannel;

beforeEach(() => {
  channel = new EventChannel();
});

afterEach(() => channel.close());

/** An id that is bound to the device of an address. */
function bound(address = rxe.address): CmId {
  const id = new CmId(channel, { portSpace: 'UDP' });
  id.bind({ address, port: 0 });
  return id;
}

describe('on rxe', () => {
  test('a group that was joined says how to send to it', async () => {
    const id = bound();
    const joined = once(id, 'multicast-join') as Promise<[CmEvent]>;
    const group = await id.joinMulticast('239.1.2.3');
    expect(group).toMatchObject({
      address: '239.1.2.3',
      queuePairNumber: 0xff_ffff,
      qkey,
      addressVector: { portNumber: 1, gid: mapped('239.1.2.3') },
    });
    const [event] = await joined;
    expect(event).toMatchObject({ name: 'multicast-join', status: 0, group: '239.1.2.3' });
    expect(event.datagram).toMatchObject({ queuePairNumber: 0xff_ffff, qkey });
    expect(event.privateData.length).toBe(0);
  });

  test('a group of IPv6 is not to be had on RoCE v2', async () => {
    await expect(bound('fd00:78::1').joinMulticast('ff15::1:2')).rejects.toMatchObject({
      code: 'ENOTSUP',
      errno: -95,
    });
  });

  test('groups are joined together, left, and joined again', async () => {
    const endpoint = new Endpoint(bound());
    const { id } = endpoint;
    const addresses = ['239.1.1.1', '239.1.1.2', '239.1.1.3'];
    const groups = await Promise.all(addresses.map((address) => id.joinMulticast(address)));
    expect(groups.map(({ addressVector }) => addressVector.gid)).toEqual(addresses.map(mapped));
    await Promise.all(groups.map((group) => group.leave()));
    await groups[0]!.leave();
    const again = await id.joinMulticast(addresses[0]!);
    expect(again.addressVector.gid).toEqual(mapped(addresses[0]!));
    await endpoint.close();
  });

  test('a group that was joined is not joined again', async () => {
    const id = bound();
    const joining = id.joinMulticast('239.1.2.3');
    await expect(id.joinMulticast('239.1.2.3')).rejects.toMatchObject({
      code: 'EADDRINUSE',
      syscall: 'rdma_join_multicast_ex',
    });
    await joining;
    const other = bound();
    await other.joinMulticast('239.1.2.3');
  });

  test('a queue pair is closed while its id is in groups', async () => {
    const endpoint = new Endpoint(bound());
    const group = await endpoint.id.joinMulticast('239.1.2.3');
    await endpoint.queuePair.close();
    await expect(group.leave()).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
    await endpoint.close();
  });

  test('a queue pair is closed while its id joins', async () => {
    const endpoint = new Endpoint(bound());
    const joining = endpoint.id.joinMulticast('239.1.2.3');
    await Promise.all([
      expect(joining).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' }),
      endpoint.queuePair.close(),
    ]);
    await endpoint.id.joinMulticast('239.1.2.3');
    await endpoint.close();
  });

  test('an id is closed while it joins', async () => {
    const endpoint = new Endpoint(bound());
    const joining = endpoint.id.joinMulticast('239.1.2.3');
    await Promise.all([expect(joining).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' }), endpoint.close()]);
  });

  test('leaving is over when the id is closed', async () => {
    const endpoint = new Endpoint(bound());
    const group = await endpoint.id.joinMulticast('239.1.2.3', { sendOnly: true });
    const leaving = group.leave();
    await endpoint.close();
    await leaving;
    await expect(endpoint.id.joinMulticast('239.1.2.3')).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });

  test('an address that is no group can not be received from', async () => {
    const endpoint = new Endpoint(bound());
    const failed = once(endpoint.id, 'multicast-error') as Promise<[CmEvent]>;
    await expect(endpoint.id.joinMulticast('10.1.2.3')).rejects.toMatchObject({ address: '10.1.2.3' });
    expect((await failed)[0]).toMatchObject({ group: '10.1.2.3', reason: expect.stringMatching(/^E/) });
    await endpoint.close();
  });

  test('ids of connections, and those without a device, join nothing', async () => {
    const id = new CmId(channel);
    id.bind({ address: rxe.address, port: 0 });
    await expect(id.joinMulticast('239.1.2.3')).rejects.toMatchObject({ code: 'EINVAL' });
    const unbound = new CmId(channel, { portSpace: 'UDP' });
    await expect(unbound.joinMulticast('239.1.2.3')).rejects.toMatchObject({ code: 'EINVAL' });
    unbound.bind({ address: '0.0.0.0', port: 0 });
    await expect(unbound.joinMulticast('239.1.2.3')).rejects.toMatchObject({ code: 'EINVAL' });
  });
});

test('siw has no multicast', async () => {
  await expect(bound(siw.address).joinMulticast('239.1.2.3')).rejects.toMatchObject({ code: 'ENOTSUP' });
});
