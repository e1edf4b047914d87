import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHosts, createRxePair, type Network } from '#lib/guest/network.js';
import { type Implementation, RpingProcess, startServer } from './rping-process.js';

/** How a Node client asks for peerToPeer, and what it says of it afterwards. */
const asked = [
  ['plain', [], null],
  ['peer-to-peer', ['--peer-to-peer'], 'rtr read'],
  ['peer-to-peer with a Write first', ['--peer-to-peer', '--rtr', 'write'], 'rtr write'],
  ['peer-to-peer without a header', ['--peer-to-peer', '--negotiate', 'off'], 'rtr read'],
] as const;

describe.each([
  ['siw', () => createHosts(2)],
  ['rxe', createRxePair],
])('rping over %s', (_, create) => {
  let network: Network;
  beforeAll(async () => {
    network = await create();
  });
  afterAll(() => network.close());

  interface Ends {
    server: Implementation;
    client: Implementation;
    family?: 'address' | 'address6';
    count?: number;
    size?: number;
    serverArgs?: readonly string[];
    clientArgs?: readonly string[];
  }

  async function pingBetween({
    server: serverIs,
    client: clientIs,
    family = 'address',
    count = 10,
    size = 64,
    serverArgs = [],
    clientArgs = [],
  }: Ends) {
    const [serverHost, clientHost] = [network.host(1), network.host(2)];
    const address = serverHost[family];
    // C's server takes no text that is longer than its own.
    const room = serverIs === 'C' ? ['-S', String(size)] : [];
    const server = await startServer(serverIs, serverHost, address, [...room, ...serverArgs]);
    const pings =
      clientIs === 'C'
        ? ['-c', '-a', address, '-C', String(count), '-S', String(size), '-V']
        : [address, '-i', '0', '-c', String(count), '-s', String(size)];
    const args = [...pings, ...clientArgs];
    const client = new RpingProcess(clientIs, clientHost, args);
    return { client: await client.ended, server: await server.ended };
  }

  function expectPings({ client, server }: Awaited<ReturnType<typeof pingBetween>>, count = 10, size = 64) {
    expect(client.status, client.output).toBe(0);
    expect(server.status, server.output).toBe(0);
    expect(server.texts.length).toBe(count);
    for (const [number, shown] of server.texts.entries()) {
      expect(shown.length).toBe(size - 1);
      expect(shown.startsWith(`rdma-ping-${number}: `)).toBe(true);
    }
    expect(client.texts).toEqual(server.texts);
  }

  test.each([
    ['takes part in peer-to-peer', 'prefer'],
    ['declines peer-to-peer', 'off'],
  ])('a C client pings a Node server that %s', async (_, negotiate) => {
    const serverArgs = ['--negotiate', negotiate];
    expectPings(await pingBetween({ server: 'Node', client: 'C', serverArgs }));
  });

  test.each(asked)('a Node client pings a C server: %s', async (_, clientArgs, handshake) => {
    const ends = await pingBetween({ server: 'C', client: 'Node', clientArgs });
    expectPings(ends);
    if (handshake === null) expect(ends.client.output).not.toContain('peer-to-peer:');
    else expect(ends.client.output).toContain(`peer-to-peer: not negotiated, ${handshake}`);
  });

  test.each([
    ['C', 'Node', 26],
    ['C', 'Node', 65535],
    ['Node', 'C', 26],
    ['Node', 'C', 65535],
  ] as const)(
    'a %s client pings a %s server over IPv6 with texts of %i bytes',
    async (client, server, size) => {
      const clientArgs = client === 'Node' ? ['--peer-to-peer'] : [];
      const ends = await pingBetween({ server, client, family: 'address6', size, count: 20, clientArgs });
      expectPings(ends, 20, size);
    },
  );

  test.each(['read', 'write', 'send'])('two Node ends negotiate, with rtr %s', async (rtr) => {
    const clientArgs = ['--peer-to-peer', '--negotiate', 'require', '--rtr', rtr];
    const ends = await pingBetween({ server: 'Node', client: 'Node', clientArgs });
    expectPings(ends);
    for (const { output } of Object.values(ends)) {
      expect(output).toContain(`peer-to-peer: negotiated, rtr ${rtr}`);
    }
  });

  test('a Node client that requires peer-to-peer refuses a C server', async () => {
    const clientArgs = ['--peer-to-peer', '--negotiate', 'require'];
    const { client, server } = await pingBetween({ server: 'C', client: 'Node', clientArgs });
    expect(client.status).toBe(1);
    expect(client.output).toContain('ERR_RDMA_PEER_TO_PEER_UNSUPPORTED');
    expect(server.texts).toEqual([]);
  });

  test('a Node server that requires peer-to-peer refuses a C client', async () => {
    const serverArgs = ['--negotiate', 'require'];
    const { client, server } = await pingBetween({ server: 'Node', client: 'C', serverArgs });
    expect(client.status).not.toBe(0);
    expect(server.status).toBe(1);
    expect(server.output).toContain('ERR_RDMA_PEER_TO_PEER_REQUIRED');
  });
});
