import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRxePair, type Network } from '#lib/guest/network.js';
import { example, type Implementation, Program, startServer } from './program.js';

// siw has no datagrams: udaddy in C can't make its queue pair there either.
let network: Network;
beforeAll(async () => {
  network = await createRxePair();
});
afterAll(() => network.close());

function command(implementation: Implementation, ...args: string[]): string[] {
  const all = ['-C', '7', '-S', '333', ...args];
  return implementation === 'C' ? ['udaddy', ...all] : example('udaddy', ...all);
}

test.each([
  ['C', 'Node'],
  ['Node', 'C'],
  ['Node', 'Node'],
] as const)('datagrams of a udaddy in %s are answered by one in %s', async (client, server) => {
  const [near, far] = [network.host(2), network.host(1)];
  const answering = await startServer(far, command(server, '-b', far.address));
  const asking = new Program(near, command(client, '-s', far.address, '-b', near.address));
  const [asked, answered] = await Promise.all([asking.ended, answering.ended]);
  expect(asked.status, asked.output).toBe(0);
  expect(answered.status, answered.output).toBe(0);
  if (client === 'Node') expect(asked.output).toBe('udaddy client: 7 datagrams of 333 bytes\n');
  if (server === 'Node') expect(answered.output).toBe('udaddy server: 7 datagrams of 333 bytes\n');
});
