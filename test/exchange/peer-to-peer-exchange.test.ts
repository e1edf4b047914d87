import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHosts, createRxePair, type Network } from '#lib/guest/network.js';
import { complete, type ExchangeOptions, exchange, nothingLost } from '../support/exchange/exchange.js';

const minutes = 60_000;

/** Connections of one test: the others have fewer unless there is time for all. */
const few = process.env.NODE_RDMA_TEST_LONG === undefined ? 200 : 500;
const loaded = process.env.NODE_RDMA_TEST_LONG === undefined ? 100 : 200;

/** Both ends of a network's wire, and the network's end when the tests are over. */
function withNetwork(create: () => Promise<Network>) {
  let network: Network;
  beforeAll(async () => {
    network = await create();
  });
  afterAll(() => network.close());
  return {
    run: (name: string, options: ExchangeOptions) =>
      exchange(name, { active: network.host(1), passive: network.host(2) }, options),
    shape: async (shape: { delay?: number; loss?: number }) => {
      for (const host of network.hosts) await host.wire.shape(shape);
    },
  };
}

describe('peer-to-peer connections over siw, both sides speaking the moment they may', () => {
  const { run, shape } = withNetwork(() => createHosts(2));

  it(
    '1,000 of them, 20 at a time, lose nothing, also when 20 carry many messages to a slow reader',
    async () => {
      const done = await run('siw, read', { connections: 1000, heavy: 20 });
      expect(nothingLost(done)).toEqual(complete(1000));
      expect(done.active.negotiated).toBe(1000);
      expect(done.active.received).toBe(980 + 20 * 200);
    },
    5 * minutes,
  );

  it.each(['send', 'write'] as const)(
    `${few} of them with rtr %s lose nothing`,
    async (rtr) => {
      const done = await run(`siw, ${rtr}`, { connections: few, heavy: 5, peerToPeer: { rtr } });
      expect(nothingLost(done)).toEqual(complete(few));
    },
    5 * minutes,
  );

  it(
    '100 of them on a long wire that loses packets lose nothing',
    async () => {
      await shape({ delay: 20, loss: 1 });
      try {
        const done = await run('siw, 20 ms, 1 % loss', { connections: 100, heavy: 2 });
        expect(nothingLost(done)).toEqual(complete(100));
      } finally {
        await shape({});
      }
    },
    5 * minutes,
  );

  it(
    `${loaded} of them on a loaded machine lose nothing, and kicks free those whose wake-up was lost`,
    async () => {
      const busy = Array.from({ length: 3 }, () =>
        spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
      );
      try {
        const done = await run('siw, under load', { connections: loaded, heavy: 2 });
        expect(nothingLost(done)).toEqual(complete(loaded));
      } finally {
        for (const child of busy) child.kill('SIGKILL');
      }
    },
    5 * minutes,
  );
});

describe('peer-to-peer connections over rxe, both sides speaking the moment they may', () => {
  const { run, shape } = withNetwork(createRxePair);

  it(
    '200 of them lose nothing',
    async () => {
      const done = await run('rxe, read', { connections: 200, heavy: 5 });
      expect(nothingLost(done)).toEqual(complete(200));
    },
    5 * minutes,
  );

  it(
    '100 of them on a wire that loses packets lose nothing',
    async () => {
      await shape({ loss: 1 });
      try {
        const done = await run('rxe, 1 % loss', { connections: 100, heavy: 2 });
        expect(nothingLost(done)).toEqual(complete(100));
      } finally {
        await shape({});
      }
    },
    5 * minutes,
  );
});
