import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { Device } from 'node-rdma/verbs';
import { describe, expect, test } from 'vitest';
import { devices, rxe, siw } from '../support/devices.js';
import { gidIndexOf } from '../support/verbs/by-hand.js';

function sysfs(device: string, path: string): string {
  return readFileSync(`/sys/class/infiniband/${device}/${path}`, 'utf8').trim();
}

describe.each(devices)('on %s', (_, guest) => {
  test('the attributes of a port are those that the kernel tells elsewhere', async () => {
    const device = Device.open(guest.device);
    const port = device.queryPort();
    expect(sysfs(guest.device, 'ports/1/state')).toBe('4: ACTIVE');
    expect(port.state).toBe('active');
    expect(port.linkLayer).toBe('ethernet');
    expect(port.lid).toBe(Number(sysfs(guest.device, 'ports/1/lid')));
    expect(port.smLid).toBe(Number(sysfs(guest.device, 'ports/1/sm_lid')));
    expect(port.lmc).toBe(Number(sysfs(guest.device, 'ports/1/lid_mask_count')));
    expect(port.portCapFlags).toBe(Number(sysfs(guest.device, 'ports/1/cap_mask')));
    expect(port.maxMtu).toBeGreaterThanOrEqual(port.activeMtu);
    expect(port.gidTableLength).toBeGreaterThan(0);
    await device.close();
  });

  test('there is no second port', async () => {
    const device = Device.open(guest.device);
    expect(device.attributes.physPortCnt).toBe(1);
    expect(() => device.queryPort(2)).toThrow(expect.objectContaining({ syscall: 'ibv_query_port' }));
    await device.close();
  });

  test('extended attributes are told, and are 0 for what the device has not', async () => {
    const device = Device.open(guest.device);
    expect(device.extendedAttributes).toMatchObject({
      onDemandPagingCaps: 0n,
      maxDeviceMemorySize: 0n,
      maxTso: 0,
      maxCqModerationCount: 0,
      maxCqModerationPeriod: 0,
    });
    await device.close();
  });
});

test('rxe has the default P_Key and none behind the table', async () => {
  const device = Device.open(rxe.device);
  expect(device.queryPkey(1, 0)).toBe(0xffff);
  expect(device.queryPort().pkeyTableLength).toBe(1);
  expect(() => device.queryPkey(1, 1)).toThrow(expect.objectContaining({ syscall: 'ibv_query_pkey' }));
  await device.close();
});

test('a GID of rxe has its type and its network interface', async () => {
  const device = Device.open(rxe.device);
  const index = gidIndexOf(device, rxe.address);
  const entry = device.queryGidEntry(1, index);
  expect(entry.gid).toEqual(device.queryGid(1, index));
  expect(entry.type).toBe('roce-2');
  const netdev = sysfs(rxe.device, `ports/1/gid_attrs/ndevs/${index}`);
  expect(networkInterfaces()[netdev]?.map(({ address }) => address)).toContain(rxe.address);
  expect(entry.interfaceIndex).toBe(Number(readFileSync(`/sys/class/net/${netdev}/ifindex`, 'utf8')));
  const last = device.queryPort().gidTableLength - 1;
  expect(() => device.queryGidEntry(1, last)).toThrow(expect.objectContaining({ code: 'ENODATA' }));
  await device.close();
});

test('capabilities say what siw and rxe have', async () => {
  const [iwarp, roce] = [Device.open(siw.device), Device.open(rxe.device)];
  expect(iwarp.capabilities).toMatchObject({
    queuePairTypes: ['RC'],
    immediateData: false,
    sendWithInvalidate: true,
    localInvalidate: false,
    atomics: false,
    memoryWindows: 0,
    querySharedReceiveQueue: false,
    addressHandles: false,
    multicastGroups: 0,
    resizeCompletionQueue: false,
    completionModeration: false,
    completionFields: [],
  });
  expect(roce.capabilities).toMatchObject({
    queuePairTypes: ['RC', 'UC', 'UD'],
    immediateData: true,
    sendWithInvalidate: true,
    localInvalidate: true,
    atomics: true,
    querySharedReceiveQueue: true,
    addressHandles: true,
    resizeCompletionQueue: true,
    completionModeration: false,
    completionFields: [],
  });
  for (const { capabilities } of [iwarp, roce]) expect(capabilities.sharedReceiveQueues).toBeGreaterThan(0);
  expect(roce.capabilities.memoryWindows).toBeGreaterThan(0);
  expect(roce.capabilities.multicastGroups).toBeGreaterThan(0);
  await iwarp.close();
  await roce.close();
});
