import { existsSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding, Host } from '#lib/cli/devices/host.js';
import { nodeRdma, run } from './command.js';

interface Told {
  status: number | null;
  usable: boolean;
  findings: Finding[];
  host: Host;
}

async function devices(prefix: readonly string[] = []): Promise<Told> {
  const { status, stdout, stderr } = await nodeRdma(['devices', '--json'], prefix);
  expect(stderr).toBe('');
  return { status, ...(JSON.parse(stdout) as Omit<Told, 'status'>) };
}

/** An ordinary user: who may read whatever is on the way to the command, and nothing else. */
const ordinaryUser = [
  ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'],
  ...['--inh-caps=-all,+dac_read_search', '--ambient-caps=-all,+dac_read_search'],
];

// The first process of the guest has the modules in its own root.
const modules = '/proc/1/root/modules';
/** Each behind those that it needs. */
const stack = ['ib_core', 'iw_cm', 'ib_cm', 'rdma_cm', 'ib_uverbs', 'rdma_ucm', 'siw', 'rdma_rxe'];

const addSiw = () => run('rdma', 'link', 'add', 'siw0', 'type', 'siw', 'netdev', 'wire0');

beforeAll(async () => {
  // The guest has the files of a machine that may be a container: it is none itself.
  await Promise.all(['/.dockerenv', '/run/.containerenv'].map((mark) => rm(mark, { force: true })));
});

describe('node-rdma devices', () => {
  test('shows siw and rxe with what they can do, and finds nothing missing', async () => {
    const { status, usable, findings, host } = await devices();
    expect(findings).toEqual([]);
    expect({ status, usable }).toEqual({ status: 0, usable: true });
    const device = (name: string) => host.devices.find((other) => other.name === name);
    expect(device('siw0')).toMatchObject({
      driver: 'siw',
      transport: 'iwarp',
      ports: [{ number: 1, state: 'active', netdev: 'wire0', addresses: ['10.77.0.1', 'fd00:77::1'] }],
      limits: { privateData: 251, immediateData: false, gatherElementsOfRead: 1 },
    });
    expect(device('rxe0')).toMatchObject({
      driver: 'rxe',
      transport: 'infiniband',
      ports: [{ number: 1, state: 'active', netdev: 'wire2', addresses: ['10.78.0.1', 'fd00:78::1'] }],
      limits: { privateData: 56, immediateData: true },
    });
  });

  test('is a table for a person', async () => {
    const { stdout } = await nodeRdma(['devices']);
    expect(stdout).toMatch(/^Device +Driver +Transport +Port +State +Netdev +Addresses$/m);
    expect(stdout).toMatch(/^siw0 +siw +iWARP +1 +active +wire0 +10\.77\.0\.1 fd00:77::1$/m);
    expect(stdout).toMatch(/^rxe0 +rxe +RoCE +1 +active +wire2 +10\.78\.0\.1 fd00:78:/m);
  });

  test('tells of a port that is down, and a device that is still usable', async () => {
    await run('ip', 'link', 'set', 'wire0', 'down');
    try {
      const { status, findings } = await devices();
      expect(findings).toEqual([
        {
          severity: 'error',
          device: 'siw0',
          problem: 'port 1 is down: wire0 is down',
          cure: 'ip link set wire0 up',
        },
      ]);
      expect(status).toBe(0);
    } finally {
      await run('ip', 'link', 'set', 'wire0', 'up');
      await run('ip', 'address', 'replace', 'fd00:77::1/64', 'dev', 'wire0', 'nodad');
    }
  });

  test('tells of files that the user may not open, and the cure holds', async () => {
    const files = ['rdma_cm', 'uverbs0', 'uverbs1', 'uverbs2'].map((name) => `/dev/infiniband/${name}`);
    for (const file of files) await chmod(file, 0o600);
    const { status, findings } = await devices(ordinaryUser);
    expect(status).toBe(1);
    expect(findings.filter(({ severity }) => severity === 'error').map(({ problem }) => problem)).toEqual(
      expect.arrayContaining(files.map((file) => `this user may not open ${file}`)),
    );
    for (const { cure } of findings) {
      const [, mode, file] = /^chmod (\d+) (\S+)/.exec(cure) ?? [];
      if (file !== undefined) await run('chmod', mode!, file);
    }
    expect((await devices(ordinaryUser)).status).toBe(0);
  });

  test('tells of a low limit on locked memory, which siw applies to root as well', async () => {
    const low = ['prlimit', '--memlock=65536:65536'];
    for (const user of [[], ordinaryUser]) {
      const { status, findings } = await devices([...user, ...low]);
      expect(status).toBe(0);
      expect(findings).toMatchObject([
        { severity: 'warning', problem: expect.stringContaining('only 64 KiB of memory may be locked') },
      ]);
    }
  });

  describe('without devices', () => {
    beforeAll(async () => {
      for (const name of ['siw0', 'rxe0', 'rxe1']) await run('rdma', 'link', 'delete', name);
    });

    test('says how to make one, and the cure holds', async () => {
      const { status, usable, findings } = await devices();
      expect({ status, usable }).toEqual({ status: 1, usable: false });
      expect(findings).toMatchObject([{ problem: 'there is no RDMA device' }]);
      const [, command] = /^node-rdma (.*?) \(as root\)/.exec(findings[0]!.cure)!;
      const made = await nodeRdma(command!.replace('NETDEV', 'wire0').split(' '));
      expect(made.status, made.stderr).toBe(0);
      expect((await devices()).status).toBe(0);
      await run('rdma', 'link', 'delete', 'siw0');
    });

    describe('and without modules', () => {
      beforeAll(() => run('rmmod', ...[...stack].reverse()).then(() => {}));

      test('says that the kernel has no RDMA', async () => {
        expect(existsSync('/sys/class/infiniband')).toBe(false);
        const { status, usable, findings } = await devices();
        expect({ status, usable }).toEqual({ status: 1, usable: false });
        expect(findings.map(({ problem }) => problem)).toEqual([
          'the kernel has no RDMA: ib_uverbs, rdma_ucm not loaded',
          'there is no RDMA device',
        ]);
        expect(findings[0]!.cure).toContain('node-rdma vm');
      });

      test('soft add says which modules are missing', async () => {
        const { status, stderr } = await nodeRdma(['soft', 'add', 'siw0', 'wire0']);
        expect(status).toBe(1);
        expect(stderr).toMatch(/has no module ib_uverbs, rdma_ucm, siw\./);
      });

      afterAll(async () => {
        for (const module of stack) await run('insmod', `${modules}/${module}.ko`);
      });
    });

    afterAll(async () => {
      await addSiw();
      await run('rdma', 'link', 'add', 'rxe0', 'type', 'rxe', 'netdev', 'wire2');
      await run('rdma', 'link', 'add', 'rxe1', 'type', 'rxe', 'netdev', 'wire3');
    });
  });
});
