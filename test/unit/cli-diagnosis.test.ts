import { describe, expect, test } from 'vitest';
import { diagnose, usable } from '#lib/cli/devices/diagnosis.js';
import type { CharacterDevice, Host, HostDevice, HostPort } from '#lib/cli/devices/host.js';
import { report } from '#lib/cli/devices/report.js';

const openFile = (name: string): CharacterDevice => ({
  path: `/dev/infiniband/${name}`,
  kernel: true,
  file: true,
  accessible: true,
});
const absentFile: CharacterDevice = {
  path: '/dev/infiniband/rdma_cm',
  kernel: false,
  file: false,
  accessible: false,
};

const port: HostPort = {
  number: 1,
  state: 'active',
  linkLayer: 'ethernet',
  netdev: 'eth0',
  up: true,
  addresses: ['10.0.0.1'],
};

const siw: HostDevice = {
  name: 'siw0',
  driver: 'siw',
  transport: 'iwarp',
  verbs: openFile('uverbs0'),
  ports: [port],
  limits: {
    workRequests: 32768,
    gatherElements: 6,
    gatherElementsOfRead: 1,
    readsAtOnce: 128,
    completionQueueEntries: 1000,
    privateData: 251,
    immediateData: false,
    atomics: false,
    receiverNotReady: false,
  },
};

const mellanox: HostDevice = { ...siw, name: 'mlx5_0', driver: 'mlx5_core', transport: 'infiniband' };

const healthy: Host = {
  kernel: '6.1.0-1-amd64',
  distribution: ['debian'],
  container: false,
  root: false,
  mayLockMemory: false,
  lockedMemory: { soft: null, hard: null },
  modules: { loaded: ['ib_uverbs', 'rdma_ucm', 'siw'], available: ['ib_uverbs', 'rdma_ucm', 'siw'] },
  connectionManager: openFile('rdma_cm'),
  devices: [siw],
};

const bare: Host = {
  ...healthy,
  modules: { loaded: [], available: [] },
  connectionManager: absentFile,
  devices: [],
};

const problemsOf = (host: Host) => diagnose(host).map(({ problem }) => problem);
const curesOf = (host: Host) =>
  diagnose(host)
    .map(({ cure }) => cure)
    .join('\n');

describe('what devices finds', () => {
  test('nothing, on a healthy host', () => {
    expect(diagnose(healthy)).toEqual([]);
    expect(usable(healthy)).toBe(true);
    expect(report(healthy, [])).toContain('nothing is missing');
  });

  test('libraries that are missing, with the package of the distribution', () => {
    const broken = { ...healthy, libraryError: 'librdmacm.so.1: cannot open shared object file' };
    expect(usable(broken)).toBe(false);
    expect(curesOf(broken)).toContain('apt-get install librdmacm1 ibverbs-providers');
    expect(curesOf({ ...broken, distribution: ['almalinux', 'rhel', 'fedora'] })).toContain('dnf install');
    expect(curesOf({ ...broken, distribution: ['alpine'] })).toContain('apk add');
    expect(curesOf({ ...broken, distribution: [] })).toContain("rdma-core's libraries");
  });

  test('an addon that does not load for another reason', () => {
    const broken = { ...healthy, libraryError: 'No native build was found' };
    expect(problemsOf(broken)).toEqual(['the native addon does not load: No native build was found']);
    expect(curesOf(broken)).toBe('npm rebuild node-rdma');
  });

  test('modules that the kernel has and has not loaded', () => {
    const host = { ...bare, modules: { loaded: [], available: ['ib_uverbs', 'rdma_ucm', 'rdma_rxe'] } };
    expect(problemsOf(host)).toEqual(['not loaded: ib_uverbs, rdma_ucm', 'there is no RDMA device']);
    expect(curesOf(host)).toContain('modprobe -a ib_uverbs rdma_ucm');
    expect(curesOf(host)).toContain('node-rdma soft add rxe0 NETDEV --type rxe');
  });

  test('a kernel without RDMA, and where to get one', () => {
    expect(problemsOf(bare)[0]).toBe('the kernel has no RDMA: ib_uverbs, rdma_ucm not loaded');
    expect(curesOf(bare)).toContain('linux-modules-extra-6.1.0-1-amd64');
    expect(curesOf(bare)).toContain('node-rdma vm');
    expect(curesOf({ ...bare, container: true })).toContain('on the host of this container');
  });

  test('device files that this user may not open', () => {
    const closed = (name: string) => ({ ...openFile(name), accessible: false });
    const host = {
      ...healthy,
      connectionManager: closed('rdma_cm'),
      devices: [{ ...siw, verbs: closed('uverbs0') }],
    };
    expect(usable(host)).toBe(false);
    expect(problemsOf(host)).toEqual([
      'this user may not open /dev/infiniband/rdma_cm',
      'this user may not open /dev/infiniband/uverbs0',
    ]);
    expect(curesOf(host)).toContain('chmod 0666 /dev/infiniband/rdma_cm');
  });

  test('device files that a container was not given', () => {
    const absent = (name: string) => ({ ...openFile(name), file: false, accessible: false });
    const host = {
      ...healthy,
      container: true,
      connectionManager: absent('rdma_cm'),
      devices: [{ ...siw, verbs: absent('uverbs0') }],
    };
    expect(problemsOf(host)).toContain('there is no /dev/infiniband/uverbs0, though the kernel offers it');
    expect(curesOf(host)).toContain('--device=/dev/infiniband');
  });

  test.each<[string, Partial<HostPort>, string, string]>([
    [
      'down with its netdev',
      { state: 'down', up: false },
      'port 1 is down: eth0 is down',
      'ip link set eth0 up',
    ],
    ['down without a cable', { state: 'down' }, 'port 1 is down', 'check the cable'],
    [
      'without a subnet manager',
      { state: 'init', linkLayer: 'infiniband', netdev: 'ib0' },
      'port 1 is init',
      'opensm',
    ],
    ['without an address', { addresses: [] }, 'port 1: eth0 has no address', 'ip address add'],
  ])('a port %s', (_, change, problem, cure) => {
    const host = { ...healthy, devices: [{ ...siw, ports: [{ ...port, ...change }] }] };
    expect(problemsOf(host)).toEqual([problem]);
    expect(curesOf(host)).toContain(cure);
    expect(diagnose(host)[0]?.device).toBe('siw0');
  });

  test('a device without its user-space driver', () => {
    const host = { ...healthy, devices: [{ ...siw, openError: 'ibv_open_device ENODEV' }] };
    expect(usable(host)).toBe(false);
    expect(curesOf(host)).toContain('ibverbs-providers');
  });

  test('little memory to lock, and how to raise the limit', () => {
    const low = { ...healthy, lockedMemory: { soft: 65536, hard: 65536 } };
    expect(diagnose(low)).toMatchObject([{ severity: 'warning' }]);
    expect(problemsOf(low)[0]).toContain('only 64 KiB');
    expect(usable(low)).toBe(true);
    expect(curesOf(low)).toContain('limits.conf');
    expect(curesOf({ ...low, lockedMemory: { soft: 65536, hard: null } })).toContain('ulimit -l unlimited');
    expect(curesOf({ ...low, container: true })).toContain('--ulimit memlock=-1');
  });

  test('that a limit on locked memory binds a privileged process on siw only', () => {
    const low = { ...healthy, mayLockMemory: true, lockedMemory: { soft: 65536, hard: 65536 } };
    expect(problemsOf(low)).toHaveLength(1);
    expect(problemsOf({ ...low, devices: [mellanox] })).toEqual([]);
  });
});

describe('the report', () => {
  test('shows a row for each port, and what the device can do', () => {
    const text = report({ ...healthy, devices: [siw, mellanox] }, []);
    expect(text).toMatch(/^siw0 +siw +iWARP +1 +active +eth0 +10\.0\.0\.1$/m);
    expect(text).toMatch(/^mlx5_0 +mlx5_core +RoCE +1 +active/m);
    expect(text).toMatch(/does not +immediate data, atomics/);
  });

  test('shows each problem with its cure', () => {
    const text = report(bare, diagnose(bare));
    expect(text).toMatch(/^error: there is no RDMA device\n {2}cure: /m);
  });
});
