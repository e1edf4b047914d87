import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRxePair, type Network } from '#lib/guest/network.js';
import { example, type Implementation, Program, startUntil } from './program.js';

// siw has no datagrams, and no multicast: mckey in C can't make its queue pair there either.
let network: Network;
beforeAll(async () => {
  network = await createRxePair();
});
afterAll(() => network.close());

/**
 * A group for each test: rxe goes on listening to the Ethernet address of a group when the last queue pair has left it
 * (`ip maddress` counts one user more each time), so that a group used before looks joined too early.
 */
let groups = 0;

function command(implementation: Implementation, group: string, ...args: string[]): string[] {
  const all = ['-m', group, '-C', '7', '-S', '333', ...args];
  return implementation === 'C' ? ['mckey', ...all] : example('mckey', ...all);
}

test.each([
  ['C', 'Node', []],
  ['Node', 'C', []],
  ['Node', 'Node', []],
  ['Node', 'C', ['-o']],
  ['Node', 'Node', ['-o']],
] as const)(
  'what a mckey in %s sends to a group, one in %s receives (%o)',
  async (sender, receiver, options) => {
    const [near, far] = [network.host(2), network.host(1)];
    const group = `239.4.5.${++groups}`;
    // The Ethernet address that rxe listens to for a queue pair in the group: it takes the GID for an IPv6 address.
    const attached = new RegExp(`33:33:ef:04:05:0${groups}`);
    const watch = ['ip', 'maddress', 'show', 'dev', far.netdev];
    const receiving = await startUntil(far, command(receiver, group, '-b', far.address), watch, attached);
    const sending = new Program(near, command(sender, group, '-s', '-b', near.address, ...options));
    const [sent, received] = await Promise.all([sending.ended, receiving.ended]);
    expect(sent.status, sent.output).toBe(0);
    expect(received.status, received.output).toBe(0);
    if (sender === 'Node') expect(sent.output).toBe(`mckey: 7 datagrams sent to ${group}\n`);
    if (receiver === 'Node') {
      expect(received.output).toBe('mckey: 7 datagrams of 333 bytes from 1 queue pairs\n');
    }
  },
);
