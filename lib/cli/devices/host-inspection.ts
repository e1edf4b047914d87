import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { networkInterfaces, release } from 'node:os';
import { capabilities, Device } from '../../index.js';
import { availableModules, loadedModules } from '../soft/modules.js';
import { type RdmaLink, rdmaLinks } from '../soft/rdma-tool.js';
import type { CharacterDevice, DeviceLimits, Host, HostDevice, HostPort } from './host.js';

const relevantModules = ['ib_uverbs', 'rdma_ucm', 'siw', 'rdma_rxe'];
const sysfs = '/sys/class/infiniband';

/** Looks at this host. Everything is read: nothing is loaded, opened for writing or changed, devices are opened. */
export async function inspectHost(): Promise<Host> {
  const kernel = release();
  const [loaded, available, os, links, names] = await Promise.all([
    loadedModules(),
    availableModules(kernel),
    textOf('/etc/os-release'),
    // Without the tool ports are shown without their network devices.
    rdmaLinks().catch((): RdmaLink[] => []),
    readdir(sysfs).catch((): string[] => []),
  ]);
  const libraryError = findLibraryError();
  const devices = await Promise.all(
    names.sort().map((name) => inspectDevice(name, links, libraryError === undefined)),
  );
  return {
    kernel,
    distribution: distributionOf(os),
    container: await insideContainer(),
    root: process.geteuid?.() === 0,
    mayLockMemory: await mayLockMemory(),
    lockedMemory: await lockedMemory(),
    ...(libraryError !== undefined && { libraryError }),
    modules: {
      loaded: relevantModules.filter((name) => loaded.has(name)),
      available: relevantModules.filter((name) => available.has(name)),
    },
    connectionManager: await characterDevice('rdma_cm', '/sys/class/misc/rdma_cm'),
    devices,
  };
}

async function textOf(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).trim();
}

function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

function distributionOf(os: string): string[] {
  const values = [...os.matchAll(/^ID(?:_LIKE)?=(.*)$/gm)].map(([, value]) => value!.replaceAll('"', ''));
  return values.flatMap((value) => value.split(' '));
}

async function insideContainer(): Promise<boolean> {
  const marks = ['/.dockerenv', '/run/.containerenv', '/var/run/secrets/kubernetes.io'];
  const found = await Promise.all(marks.map((path) => succeeds(access(path))));
  return found.includes(true);
}

function findLibraryError(): string | undefined {
  try {
    Device.list();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** `Max locked memory` of /proc/self/limits: Node has no getrlimit(2). */
async function lockedMemory(): Promise<Host['lockedMemory']> {
  const [, soft, hard] = /^Max locked memory +(\S+) +(\S+)/m.exec(await textOf('/proc/self/limits')) ?? [];
  const bytes = (text: string | undefined) =>
    text === undefined || text === 'unlimited' ? null : Number(text);
  return { soft: bytes(soft), hard: bytes(hard) };
}

const capIpcLock = 1n << 14n; // capability.h

async function mayLockMemory(): Promise<boolean> {
  const [, effective = '0'] = /^CapEff:\s*(\S+)/m.exec(await textOf('/proc/self/status')) ?? [];
  return (BigInt(`0x${effective}`) & capIpcLock) !== 0n;
}

async function characterDevice(name: string, kernelPath: string): Promise<CharacterDevice> {
  const path = `/dev/infiniband/${name}`;
  const [kernel, file, accessible] = await Promise.all([
    succeeds(access(kernelPath)),
    succeeds(access(path)),
    succeeds(access(path, constants.R_OK | constants.W_OK)),
  ]);
  return { path, kernel, file, accessible };
}

async function verbsDeviceOf(name: string): Promise<CharacterDevice> {
  const folder = '/sys/class/infiniband_verbs';
  for (const candidate of await readdir(folder).catch((): string[] => []))
    if ((await textOf(`${folder}/${candidate}/ibdev`)) === name)
      return characterDevice(candidate, `${folder}/${candidate}`);
  // Without ib_uverbs the device has no name there.
  return { path: '/dev/infiniband/uverbs*', kernel: false, file: false, accessible: false };
}

async function inspectDevice(
  name: string,
  links: readonly RdmaLink[],
  libraries: boolean,
): Promise<HostDevice> {
  const folder = `${sysfs}/${name}`;
  const verbs = await verbsDeviceOf(name);
  const ports = await readdir(`${folder}/ports`).catch((): string[] => []);
  // "4: RNIC" is iWARP, "1: CA" InfiniBand and RoCE: drivers/infiniband/core/sysfs.c.
  const nodeType = await textOf(`${folder}/node_type`);
  const transport = nodeType.startsWith('4') ? 'iwarp' : nodeType.startsWith('1') ? 'infiniband' : 'unknown';
  return {
    name,
    driver: await driverOf(folder),
    transport,
    verbs,
    ports: await Promise.all(
      ports.map((number) => inspectPort(`${folder}/ports/${number}`, Number(number), name, links)),
    ),
    ...(libraries && verbs.accessible && openDevice(name)),
  };
}

/** As `Device.list()` names it, which needs the libraries. */
async function driverOf(folder: string): Promise<string> {
  const uevent = await textOf(`${folder}/device/uevent`);
  const [, driver] = /^DRIVER=(.*)$/m.exec(uevent) ?? [];
  if (driver !== undefined) return driver;
  const description = await textOf(`${folder}/node_desc`);
  if (description.startsWith('Software iWARP')) return 'siw';
  return description.startsWith('rxe') ? 'rxe' : 'unknown';
}

function openDevice(name: string): { limits: DeviceLimits } | { openError: string } {
  try {
    const able = capabilities(name);
    const device = Device.open(name);
    const { maxQpWr, maxQpRdAtom, maxCqe } = device.attributes;
    void device.close();
    const { maxSge, maxSgeRead, connectPrivateData, immediateData, atomics, receiverNotReady } = able;
    return {
      limits: {
        workRequests: maxQpWr,
        gatherElements: maxSge,
        gatherElementsOfRead: maxSgeRead,
        readsAtOnce: maxQpRdAtom,
        completionQueueEntries: maxCqe,
        privateData: connectPrivateData,
        immediateData,
        atomics,
        receiverNotReady,
      },
    };
  } catch (error) {
    return { openError: error instanceof Error ? error.message : String(error) };
  }
}

async function inspectPort(
  folder: string,
  number: number,
  device: string,
  links: readonly RdmaLink[],
): Promise<HostPort> {
  // "4: ACTIVE"
  const state = (await textOf(`${folder}/state`)).replace(/^\d+: /, '').toLowerCase() || 'unknown';
  const linkLayer = (await textOf(`${folder}/link_layer`)).toLowerCase();
  const netdev = links.find((link) => link.ifname === device && link.port === number)?.netdev ?? null;
  return {
    number,
    state,
    linkLayer: linkLayer === 'ethernet' || linkLayer === 'infiniband' ? linkLayer : 'unspecified',
    netdev,
    up: netdev === null ? null : await isUp(netdev),
    addresses: netdev === null ? [] : addressesOf(netdev),
  };
}

const interfaceUp = 1; // IFF_UP of netdevice(7)

async function isUp(netdev: string): Promise<boolean> {
  return (Number(await textOf(`/sys/class/net/${netdev}/flags`)) & interfaceUp) !== 0;
}

/** Link-local addresses are left out: a program that connects needs one of the others. */
function addressesOf(netdev: string): string[] {
  const addresses = networkInterfaces()[netdev] ?? [];
  return addresses.map(({ address }) => address).filter((address) => !address.startsWith('fe80:'));
}
