import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHosts, type Network } from '#lib/guest/network.js';
import { mpirun, nameHosts } from '../support/launchers/mpirun.js';

const program = new URL('../../scripts/examples/all-to-all.js', import.meta.url).pathname;
const runs = Number(process.env.NODE_RDMA_JOB_RUNS ?? 3);
const messages = 20;
const ranks = 16;
let network: Network;

beforeAll(async () => {
  network = await createHosts(4);
  await nameHosts(network);
});

afterAll(() => network.close());

test.each(Array.from({ length: runs }, (_, run) => run + 1))(
  'run %i under mpirun: 16 ranks on four hosts make 120 connections, and nothing is lost or comes twice',
  { timeout: 180_000 },
  async (run) => {
    const started = performance.now();
    const { status, output, errors } = await mpirun(network, ranks / 4, [process.execPath, program]);
    expect(status, `${output}\n${errors}`).toBe(0);
    const told = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    told.sort((a, b) => a.rank - b.rank);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(
      `run ${run}: ${told.reduce((sum, { received }) => sum + received, 0)} messages, ${seconds} s`,
    );
    expect(told).toEqual(
      Array.from({ length: ranks }, (_, rank) => ({
        rank,
        size: ranks,
        connections: ranks - 1,
        received: (ranks - 1) * messages,
        duplicated: 0,
      })),
    );
  },
);
