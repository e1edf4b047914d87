import { CmId, EventChannel } from 'node-rdma/cm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devices, rxe, siw } from '../support/devices.js';
import { Endpoint, Listener } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });

let channel: EventChannel;
let id: CmId;

beforeEach(() => {
  channel = new EventChannel();
  id = new CmId(channel);
});

afterEach(() => channel.close());

describe('an id on rxe', () => {
  /** An id of a connection that its peer has not answered, with options. */
  async function requested(options: Parameters<CmId['setOptions']>[0]) {
    const listener = new Listener(rxe);
    const request = listener.request();
    id.setOptions(options);
    await id.resolveAddress(listener.destination);
    await id.resolveRoute();
    const active = new Endpoint(id);
    await id.connect();
    return { active, passive: await request, listener };
  }

  test('gives its packets the type of service', async () => {
    const { passive, listener, active } = await requested({ typeOfService: 0x68 });
    // As the active side's request says it.
    expect(passive.id.queuePairAttributes('RTR').addressHandle?.trafficClass).toBe(0x68);
    await active.close();
    await listener.close();
  });

  test('waits for an acknowledgement as long as it is told', async () => {
    const { passive, listener, active } = await requested({ acknowledgeTimeout: 21 });
    const withoutOption = new CmId(channel);
    expect(() => withoutOption.setOptions({ acknowledgeTimeout: 31 })).not.toThrow();
    expect(passive.id.queuePairAttributes('RTS').timeout).toBe(21);
    await active.close();
    await listener.close();
  });

  test('for datagrams has no acknowledgement to wait for', () => {
    const datagrams = new CmId(channel, { portSpace: 'UDP' });
    expect(() => datagrams.setOptions({ acknowledgeTimeout: 20 })).toThrow(withCode('EINVAL'));
  });
});

test('the options of siw are taken before it connects', async () => {
  id.setOptions({ typeOfService: 0x10, acknowledgeTimeout: 20 });
  await id.resolveAddress({ address: siw.address, port: 1 });
});

describe.each(devices)('on %s', (_, { address }) => {
  test('an address is bound twice only where it may be reused', () => {
    const [first, second, third] = [id, new CmId(channel), new CmId(channel)];
    first.setOptions({ reuseAddress: true });
    first.bind({ address, port: 0 });
    const taken = { address, port: first.info.localPort };
    expect(() => second.bind(taken)).toThrow(withCode('EADDRINUSE'));
    third.setOptions({ reuseAddress: true });
    third.bind(taken);
    expect(third.info.localPort).toBe(taken.port);
  });
});

test('an id bound to :: leaves IPv4 to others if it keeps to its family', () => {
  id.setOptions({ addressFamilyOnly: true });
  id.bind({ address: '::', port: 7999 });
  const other = new CmId(channel);
  other.bind({ address: '0.0.0.0', port: 7999 });
  expect(other.info.localPort).toBe(7999);
});

test('an id bound to :: takes IPv4 as well if it is told not to keep to its family', () => {
  id.setOptions({ addressFamilyOnly: false });
  id.bind({ address: '::', port: 7998 });
  const other = new CmId(channel);
  expect(() => other.bind({ address: '0.0.0.0', port: 7998 })).toThrow(withCode('EADDRNOTAVAIL'));
});

test('options of an address come too late when the id listens on it', () => {
  id.bind({ address: siw.address, port: 0 });
  id.listen();
  expect(() => id.setOptions({ addressFamilyOnly: true })).toThrow(withCode('EINVAL'));
});

test('no option is set when one of them is wrong', () => {
  const wrong = { reuseAddress: true, acknowledgeTimeout: 32 };
  expect(() => id.setOptions(wrong)).toThrow(withCode('ERR_OUT_OF_RANGE'));
  id.bind({ address: siw.address, port: 0 });
  const other = new CmId(channel);
  other.setOptions({ reuseAddress: true });
  expect(() => other.bind({ address: siw.address, port: id.info.localPort })).toThrow(withCode('EADDRINUSE'));
});
