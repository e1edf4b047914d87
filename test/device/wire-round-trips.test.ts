import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ConnectOptions } from 'node-rdma';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHosts, type Host, type Network } from '#lib/guest/network.js';
import { Capture } from '../support/capture/capture.js';
import { type Conversation, describeConversation } from '../support/capture/conversation.js';
import { startVictim } from '../support/victim-process.js';
import { roundTripsBeforeMessage, timeToMessage, travel } from '../support/wire-journey.js';

/** Connections of each kind. */
const count = 3;

let network: Network;
let near: Host;
let far: Host;
let folder: string;
let program: string;

beforeAll(async () => {
  network = await createHosts(2);
  near = network.host(1);
  far = network.host(2);
  folder = await mkdtemp(join(tmpdir(), 'round-trips-'));
  program = await compile(folder);
});

afterAll(async () => {
  await network.close();
  await rm(folder, { recursive: true });
});

/** A C program that does no more than rdma_connect() and, when that is established, a send. */
async function compile(folder: string): Promise<string> {
  const source = fileURLToPath(new URL('../../../scripts/lost-connects.c', import.meta.url));
  const program = join(folder, 'lost-connects');
  await promisify(execFile)('cc', ['-O2', '-o', program, source, '-lrdmacm', '-libverbs']);
  return program;
}

/** Its client sends first, as an MPA initiator should: nothing is lost. */
async function connectFromC(): Promise<void> {
  const rest = [far.address, 'receive', String(count)];
  const [file, ...args] = far.command([program, 'server', ...rest]);
  const server = spawn(file!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit');
  await once(server.stdout, 'data');
  const [client, ...clientArgs] = near.command([program, 'client', ...rest]);
  const { stdout } = await promisify(execFile)(client!, clientArgs);
  expect(stdout).toContain(`0 of ${count} lost`);
  await ended;
}

/** The connections that `connect` makes, as the host that makes them sees them. */
async function capture(connect: () => Promise<unknown>): Promise<Conversation[]> {
  const running = await Capture.start({ device: near.netdev, host: near });
  await connect();
  await running.until((conversations) => conversations.filter(({ isOver }) => isOver).length === count);
  const conversations = await running.stop();
  expect(conversations).toHaveLength(count);
  return conversations;
}

async function connectFromNode(options: Partial<ConnectOptions>): Promise<Conversation[]> {
  const server = { role: 'server', host: far.address, options: {}, answers: true } as const;
  const { port } = await startVictim(server, far);
  return await capture(() => travel(near, { host: far.address, port, options, count }));
}

function expectRoundTrips(conversations: readonly Conversation[], roundTrips: number): void {
  for (const conversation of conversations) {
    expect(roundTripsBeforeMessage(conversation), describeConversation(conversation)).toBe(roundTrips);
  }
}

// What a capture shows is counted, whatever the load. The clock is a witness on a wire that is slow in comparison with an
// emulated guest: even its fastest connection takes many milliseconds of computing.
describe.each([20, 200])('with %i ms of delay each way, until it can send,', (delay) => {
  let ofC: Conversation[];

  beforeAll(async () => {
    await near.wire.shape({ delay });
    await far.wire.shape({ delay });
    ofC = await capture(connectFromC);
  });

  test('a C program takes two round trips: for TCP and for MPA', () => {
    expectRoundTrips(ofC, 2);
  });

  test.each([
    ['a plain connection', 0, {}],
    ["a connection with peerToPeer and rtr 'send'", 0, { peerToPeer: { rtr: 'send' } }],
    ["a connection with peerToPeer and rtr 'write'", 0, { peerToPeer: { rtr: 'write' } }],
    ['a connection with peerToPeer: true', 1, { peerToPeer: true }],
  ] as const)('%s takes %i more than that', async (_, more, options) => {
    const conversations = await connectFromNode(options);
    expectRoundTrips(conversations, 2 + more);
    if (delay < 200) return;
    const fastest = (all: readonly Conversation[]) => Math.min(...all.map(timeToMessage));
    const beyondC = (fastest(conversations) - fastest(ofC)) / (2 * delay);
    expect(beyondC).toBeGreaterThan(more - 0.5);
    expect(beyondC).toBeLessThan(more + 0.9);
  });
});
