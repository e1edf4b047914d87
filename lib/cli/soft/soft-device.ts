import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { availableModules, loadedModules, type SoftDriver, softDrivers } from './modules.js';
import { rdmaLinks, runTool, ToolError } from './rdma-tool.js';

/** A siw or rxe device. */
export interface SoftDevice {
  readonly name: string;
  readonly driver: SoftDriver;
  readonly netdev: string | null;
  readonly state: string;
}

/** The kernel's own word for what a device is: neither driver has a link to one in sysfs. */
async function softDriverOf(name: string): Promise<SoftDriver | undefined> {
  const description = await readFile(`/sys/class/infiniband/${name}/node_desc`, 'utf8').catch(() => '');
  if (description.startsWith('Software iWARP')) return 'siw';
  if (description.startsWith('rxe')) return 'rxe';
  return undefined;
}

export async function listSoftDevices(): Promise<SoftDevice[]> {
  const devices: SoftDevice[] = [];
  for (const { ifname, netdev, state } of await rdmaLinks()) {
    const driver = await softDriverOf(ifname);
    if (driver !== undefined)
      devices.push({ name: ifname, driver, netdev: netdev ?? null, state: state.toLowerCase() });
  }
  return devices;
}

/** Loads the module of a driver unless it is there; says what to install where this kernel has none. */
async function loadDriver(driver: SoftDriver): Promise<void> {
  const module = softDrivers[driver];
  // The connection manager and user space's way to it come with them only on request.
  const wanted = ['ib_uverbs', 'rdma_ucm', module];
  const loaded = await loadedModules();
  const missing = wanted.filter((name) => !loaded.has(name));
  if (missing.length === 0) return;
  const kernel = release();
  const available = await availableModules(kernel);
  const unknown = missing.filter((name) => !available.has(name));
  if (unknown.length > 0) throw new ToolError('ERR_NO_MODULE', missingModuleText(unknown, kernel));
  for (const name of missing) await runTool('modprobe', [name]);
}

/** What can be done about kernel modules that this kernel does not come with. */
export function missingModuleText(modules: readonly string[], kernel: string): string {
  return (
    `this kernel (${kernel}) has no module ${modules.join(', ')}. ` +
    `On Ubuntu: apt-get install linux-modules-extra-${kernel}. ` +
    `Debian's kernels have rdma_rxe (linux-image-amd64, not its cloud kernel), but no siw. ` +
    'Tests need neither: node-rdma vm -- COMMAND brings a kernel of its own'
  );
}

/** Makes a soft device on a network device. Loads the kernel module that it needs; only root can. */
export async function addSoftDevice(name: string, driver: SoftDriver, netdev: string): Promise<SoftDevice> {
  requireRoot();
  await loadDriver(driver);
  await runTool('rdma', ['link', 'add', name, 'type', driver, 'netdev', netdev]);
  const device = (await listSoftDevices()).find((other) => other.name === name);
  if (device === undefined) throw new ToolError('ENODEV', `${name} was made, and is not there`);
  return device;
}

/** Removes a soft device, and no other. The kernel waits until no process has it open. */
export async function removeSoftDevice(name: string): Promise<void> {
  requireRoot();
  const devices = await listSoftDevices();
  if (!devices.some((device) => device.name === name)) {
    const known = devices.map((device) => device.name).join(', ') || 'none';
    throw new ToolError('ENODEV', `there is no soft device ${name}; those here: ${known}`);
  }
  await runTool('rdma', ['link', 'delete', name]);
}

function requireRoot(): void {
  if (process.geteuid?.() !== 0)
    throw new ToolError('EPERM', 'only root makes and removes devices: try again with sudo');
}
