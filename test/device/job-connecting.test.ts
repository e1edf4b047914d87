import type { Connection } from 'node-rdma';
import { type Job, RankError } from 'node-rdma/job';
import { afterEach, describe, expect, test } from 'vitest';
import { siw } from '../support/devices.js';
import { createRanks } from '../support/job/shared-space.js';

let jobs: Job[] = [];

afterEach(async () => {
  await Promise.all(jobs.map((job) => job.finalize()));
});

async function start(size: number): Promise<Job[]> {
  jobs = createRanks(size);
  await Promise.all(jobs.map((job) => job.listen({ addresses: [siw.address] })));
  return jobs;
}

async function exchange(connection: Connection, from: number, to: number): Promise<void> {
  const sent = connection.send(Buffer.from(`${from} to ${to}`));
  expect((await connection.receive())?.toString()).toBe(`${to} to ${from}`);
  await sent;
}

describe('ranks of a job', () => {
  test('that all connect to each other at the same instant have one connection a pair, and lose nothing', async () => {
    const ranks = await start(8);
    const pairs = ranks.flatMap(({ rank }) =>
      ranks.filter((other) => other.rank !== rank).map((to) => [rank, to.rank]),
    );
    await Promise.all(
      pairs.map(async ([from, to]) => exchange(await ranks[from!]!.connect(to!), from!, to!)),
    );
    for (const { rank, connections } of ranks) {
      expect([...connections.keys()]).toEqual(ranks.map((each) => each.rank).filter((each) => each !== rank));
      expect([...connections.values()].map(({ bytesRead }) => bytesRead)).toEqual(Array(7).fill(6));
    }
  });

  test('make a full mesh', async () => {
    const ranks = await start(6);
    const meshes = await Promise.all(ranks.map((job) => job.connectAll()));
    await Promise.all(
      meshes.flatMap((mesh, from) => [...mesh].map(([to, connection]) => exchange(connection, from, to))),
    );
    expect(meshes.map(({ size }) => size)).toEqual(Array(6).fill(5));
  });

  test('get the connection that the other one has made', async () => {
    const [near, far] = await start(2);
    const arrived = new Promise((resolve) =>
      far!.once('connection', (connection, rank) => resolve([connection, rank])),
    );
    const connection = await near!.connect(1);
    expect(await arrived).toEqual([await far!.connect(0), 0]);
    expect(await near!.connect(1)).toBe(connection);
  });

  test('connect anew when a connection has ended', async () => {
    const [near, far] = await start(2);
    for (let round = 0; round < 3; round++) {
      const [there, back] = await Promise.all([near!.connect(1), far!.connect(0)]);
      await Promise.all([exchange(there, 0, 1), exchange(back, 1, 0)]);
      await Promise.all([there.close(), back.closed]);
    }
  });

  test('are told of the rank whose connection is lost', async () => {
    const [near, far] = await start(2);
    const connection = await near!.connect(1);
    const lost = new Promise((resolve) => near!.once('lost', resolve));
    const receiving = connection.receive();
    (await far!.connect(0)).destroy();
    const error = await receiving.catch((reason) => reason);
    expect(error).toBeInstanceOf(RankError);
    expect(error).toMatchObject({ rank: 1, code: 'ECONNRESET', message: expect.stringMatching(/^rank 1: /) });
    expect(await lost).toBe(error);
  });

  test('name every rank that does not listen, and connect to the others', async () => {
    jobs = createRanks(4);
    const [first, second, ...silent] = jobs;
    await Promise.all([first!, second!].map((job) => job.listen({ addresses: [siw.address] })));
    const meshes = [first!, second!].map((job) =>
      job.connectAll({ timeout: 1500 }).catch((reason) => reason),
    );
    for (const error of await Promise.all(meshes)) {
      expect(error).toMatchObject({
        code: 'ERR_RDMA_RANKS_UNREACHABLE',
        ranks: silent.map(({ rank }) => rank),
        message: expect.stringMatching(/^2 of 3 ranks can't be reached: rank 2: .*; rank 3: /),
      });
    }
    expect([...first!.connections.keys()]).toEqual([1]);
  });

  test('let nobody in who does not belong to the job', async () => {
    const [near] = await start(2);
    const [stranger] = createRanks(2).slice(1);
    const [address] = await near!.listen();
    await stranger!.put('x', 'y');
    const { connect } = await import('node-rdma');
    const intruder = connect({
      host: address!.address,
      port: address!.port,
      peerToPeer: true,
      privateData: Buffer.from('72616e6b0000000000000000000000010000000000000000'.slice(0, 40), 'hex'),
    });
    await expect(intruder.established).rejects.toMatchObject({ code: 'ERR_RDMA_REJECTED' });
    await stranger!.finalize();
  });
});

describe('a job', () => {
  test.each([-1, 2, 1.5, '0', null])('refuses to connect to rank %o', async (rank) => {
    const [job] = await start(2);
    await expect(job!.connect(rank as number)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_(OUT_OF_RANGE|INVALID_ARG_TYPE)$/),
    });
  });

  test('refuses what is no key, no value, no address and no time-out', async () => {
    const [job] = await start(2);
    const refused = (code: string) => expect.objectContaining({ code });
    const call = async (what: () => unknown) =>
      Promise.resolve()
        .then(what)
        .catch((error) => error);
    for (const key of ['', 'x'.repeat(512), 'a\0b', 'pmix.rank', 'node-rdma.card']) {
      expect(await call(() => job!.put(key, 'v'))).toEqual(refused('ERR_INVALID_ARG_VALUE'));
      expect(await call(() => job!.get(0, key))).toEqual(refused('ERR_INVALID_ARG_VALUE'));
    }
    for (const value of [undefined, null, 5, {}, [1]]) {
      expect(await call(() => job!.put('key', value as never))).toEqual(refused('ERR_INVALID_ARG_TYPE'));
      expect(await call(() => job!.put(value as never, 'v'))).toEqual(refused('ERR_INVALID_ARG_TYPE'));
    }
    expect(await call(() => job!.connect(0))).toEqual(refused('ERR_INVALID_ARG_VALUE'));
    expect(await call(() => job!.get(0, 'key', { timeout: -1 }))).toEqual(refused('ERR_OUT_OF_RANGE'));
    expect(await call(() => job!.get(0, 'key', { timeout: 1 }))).toEqual(refused('ETIMEDOUT'));
    expect(await call(() => job!.connectAll({ parallel: 0 }))).toEqual(refused('ERR_OUT_OF_RANGE'));
    const [other] = createRanks(1);
    for (const addresses of [[], 'x', [5], ['localhost']]) {
      expect(await call(() => other!.listen({ addresses: addresses as never }))).toEqual(
        refused(
          Array.isArray(addresses) && addresses[0] === 'localhost'
            ? 'ERR_INVALID_ARG_VALUE'
            : 'ERR_INVALID_ARG_TYPE',
        ),
      );
    }
    await other!.finalize();
    expect(await call(() => other!.put('key', 'v'))).toEqual(refused('ERR_RDMA_CLOSED'));
  });
});
