import { missingModuleText } from '../soft/soft-device.js';
import type { Finding, Host, HostDevice, HostPort } from './host.js';

/** Bytes; Debian's default of 8 MiB is used up by a handful of connections. */
const enoughLockedMemory = 64 * 2 ** 20;

const containerCure =
  'give the container its devices: docker run --device=/dev/infiniband --ulimit memlock=-1 … (see lib/cli/README.md)';

/** Finds what keeps this host from RDMA, or will; the most fundamental first. */
export function diagnose(host: Host): Finding[] {
  return [
    ...diagnoseLibraries(host),
    ...diagnoseModules(host),
    ...diagnoseConnectionManager(host),
    ...diagnoseAbsence(host),
    ...host.devices.flatMap((device) => diagnoseDevice(device, host)),
    ...diagnoseLockedMemory(host),
  ];
}

/** Whether a connection could be made now, over one device at least. */
export function usable(host: Host): boolean {
  const ready = ({ verbs, openError, ports }: HostDevice) =>
    verbs.accessible && openError === undefined && ports.some(({ state }) => state === 'active');
  return host.libraryError === undefined && host.connectionManager.accessible && host.devices.some(ready);
}

function installCure(distribution: readonly string[]): string {
  const has = (...names: string[]) => names.some((name) => distribution.includes(name));
  if (has('debian', 'ubuntu')) return 'apt-get install librdmacm1 ibverbs-providers';
  if (has('fedora', 'rhel', 'centos')) return 'dnf install librdmacm libibverbs';
  if (has('suse', 'opensuse')) return 'zypper install librdmacm1 libibverbs1';
  if (has('alpine')) return 'apk add rdma-core';
  return "install rdma-core's libraries: librdmacm, libibverbs and their providers";
}

function diagnoseLibraries({ libraryError, distribution }: Host): Finding[] {
  if (libraryError === undefined) return [];
  const absent = /lib(rdmacm|ibverbs)/.test(libraryError);
  return [
    {
      severity: 'error',
      problem: absent
        ? 'librdmacm or libibverbs is not installed'
        : `the native addon does not load: ${libraryError}`,
      cure: absent ? installCure(distribution) : 'npm rebuild node-rdma',
    },
  ];
}

const cores = ['ib_uverbs', 'rdma_ucm'] as const;

function diagnoseModules({ modules, kernel, container, devices, connectionManager }: Host): Finding[] {
  const present = {
    ib_uverbs: devices.some(({ verbs }) => verbs.kernel),
    rdma_ucm: connectionManager.kernel,
  };
  const missing = cores.filter((name) => !present[name] && !modules.loaded.includes(name));
  if (missing.length === 0) return [];
  const known = missing.filter((name) => modules.available.includes(name));
  if (known.length > 0)
    return [
      {
        severity: 'error',
        problem: `not loaded: ${known.join(', ')}`,
        cure: `modprobe -a ${known.join(' ')}`,
      },
    ];
  return [
    {
      severity: 'error',
      problem: `the kernel has no RDMA: ${missing.join(', ')} not loaded`,
      cure: container
        ? `on the host of this container: modprobe -a ${missing.join(' ')}`
        : missingModuleText(missing, kernel),
    },
  ];
}

function diagnoseConnectionManager({ connectionManager, container }: Host): Finding[] {
  const { path, kernel, file, accessible } = connectionManager;
  if (!kernel || accessible) return [];
  return [
    {
      severity: 'error',
      problem: file ? `this user may not open ${path}` : `there is no ${path}, though the kernel offers it`,
      cure: accessCure(path, file, container),
    },
  ];
}

function accessCure(path: string, file: boolean, container: boolean): string {
  if (file) return `chmod 0666 ${path} (as root; a udev rule makes it last)`;
  return container ? containerCure : 'udevadm trigger (as root), or reboot: udev makes the file';
}

function diagnoseAbsence({ devices, modules, container }: Host): Finding[] {
  if (devices.length > 0) return [];
  const soft = ['siw', 'rdma_rxe'].filter(
    (name) => modules.loaded.includes(name) || modules.available.includes(name),
  );
  const type = soft.includes('siw') ? 'siw' : 'rxe';
  const make = `node-rdma soft add ${type}0 NETDEV --type ${type} (as root) makes one of a network device`;
  const emulate = 'node-rdma vm -- COMMAND runs a command on a kernel that has some';
  return [
    {
      severity: 'error',
      problem: 'there is no RDMA device',
      cure: soft.length > 0 && !container ? `${make}; ${emulate}` : emulate,
    },
  ];
}

function diagnoseDevice(device: HostDevice, host: Host): Finding[] {
  const { name, verbs, openError } = device;
  const concerns = { device: name, severity: 'error' as const };
  const findings: Finding[] = device.ports.flatMap((port) => diagnosePort(name, port));
  if (!verbs.kernel) return findings;
  if (!verbs.accessible) {
    const problem = verbs.file
      ? `this user may not open ${verbs.path}`
      : `there is no ${verbs.path}, though the kernel offers it`;
    findings.unshift({ ...concerns, problem, cure: accessCure(verbs.path, verbs.file, host.container) });
  } else if (openError !== undefined) {
    findings.unshift({ ...concerns, problem: `it can't be opened: ${openError}`, cure: providerCure(host) });
  }
  return findings;
}

function providerCure({ distribution }: Host): string {
  return `its user-space driver may be missing: ${installCure(distribution)}`;
}

function diagnosePort(device: string, port: HostPort): Finding[] {
  const { number, state, netdev, up, linkLayer, addresses } = port;
  if (state !== 'active') return [{ severity: 'error', device, ...inactivePort(port) }];
  if (netdev !== null && up !== false && addresses.length === 0 && linkLayer !== 'unspecified')
    return [
      {
        severity: 'error',
        device,
        problem: `port ${number}: ${netdev} has no address`,
        cure: `ip address add ADDRESS/24 dev ${netdev}`,
      },
    ];
  return [];
}

function inactivePort({ number, state, netdev, up, linkLayer }: HostPort): Pick<Finding, 'problem' | 'cure'> {
  const problem = `port ${number} is ${state}`;
  if (linkLayer === 'infiniband' && state !== 'down')
    return { problem, cure: 'no subnet manager has configured it: start opensm on a host of the fabric' };
  if (netdev !== null && up === false)
    return { problem: `${problem}: ${netdev} is down`, cure: `ip link set ${netdev} up` };
  return { problem, cure: `there is no link: check the cable, and the other end of ${netdev ?? 'the wire'}` };
}

function diagnoseLockedMemory({ lockedMemory, mayLockMemory, devices, container }: Host): Finding[] {
  const { soft, hard } = lockedMemory;
  // siw looks at the limit and at nothing else: drivers/infiniband/sw/siw/siw_mem.c, siw_umem_get().
  const counts = devices.some(({ driver }) => !mayLockMemory || driver === 'siw');
  if (soft === null || soft >= enoughLockedMemory || !counts) return [];
  const problem = `only ${Math.floor(soft / 1024)} KiB of memory may be locked: registering more fails with ENOMEM`;
  const raise = 'ulimit -l unlimited in the shell that starts the program';
  const limits =
    "'* - memlock unlimited' in /etc/security/limits.conf, or LimitMEMLOCK=infinity in a systemd unit";
  const cure = container
    ? 'docker run --ulimit memlock=-1 …'
    : hard === null || mayLockMemory
      ? raise
      : `${limits}, and log in again`;
  return [{ severity: 'warning', problem, cure }];
}
