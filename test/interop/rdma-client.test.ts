import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHosts, createRxePair, type Network } from '#lib/guest/network.js';
import { example, type Implementation, Program, startServer } from './program.js';

/** Who asks and who answers; what C says to C is not ours to test. */
const pairs = [
  ['C', 'Node'],
  ['Node', 'C'],
  ['Node', 'Node'],
] as const;

describe.each([
  ['siw', () => createHosts(2)],
  ['rxe', createRxePair],
])('over %s', (_, create) => {
  let network: Network;
  beforeAll(async () => {
    network = await create();
  });
  afterAll(() => network.close());

  function command(implementation: Implementation, role: 'client' | 'server', host: string): string[] {
    if (implementation === 'C') return [`rdma_${role}`, '-s', host, '-p', '7471'];
    return example(`rdma-${role}`, host, '7471');
  }

  test.each(pairs)('an rdma_client in %s is answered by an rdma_server in %s', async (client, server) => {
    const { address } = network.host(1);
    const listening = await startServer(network.host(1), command(server, 'server', address));
    const asking = new Program(network.host(2), command(client, 'client', address));
    const [asked, answered] = await Promise.all([asking.ended, listening.ended]);
    expect(asked.status, asked.output).toBe(0);
    expect(answered.status, answered.output).toBe(0);
    if (client === 'Node') expect(asked.output).toBe(`rdma-client: 16 bytes from ${address}\n`);
    if (server === 'Node') expect(answered.output).toMatch(/^rdma-server: 16 bytes from 10\./);
  });
});
