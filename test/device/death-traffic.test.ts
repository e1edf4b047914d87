import { type Connection, connect } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dial, listen, nextConnection, rejection } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';
import { startVictim } from '../support/victim-process.js';
import { rxeWire } from '../support/victim-wire.js';
import { outcome } from '../support/victim-witness.js';

const ball = Buffer.alloc(1000, 'ball');
const peerToPeer = true;

/** More messages than the peer has receives for and the wire takes: those behind wait. */
function flood(connection: Connection): Promise<(Error | undefined)[]> {
  return Promise.all(Array.from({ length: 300 }, () => outcome(connection.send(ball))));
}

async function receiveSome(connection: Connection, count: number): Promise<void> {
  for (let received = 0; received < count; received++) {
    if ((await connection.receive()) === null) throw new Error(`the end after ${received} messages`);
  }
}

describe.each(devices)('in the middle of traffic over %s', (_, device) => {
  const server = { role: 'server', host: device.address, options: {}, answers: true } as const;

  test('a client whose server is killed has everything rejected with one cause', async () => {
    const victim = await startVictim(server);
    const client = dial(device, victim.port, { peerToPeer });
    const sent = flood(client);
    await receiveSome(client, 20);
    const more = flood(client);
    const closed = rejection(client.closed);
    await victim.kill();
    const outcomes = [...(await sent), ...(await more)];
    const error = await closed;
    // What is on its way when the peer dies may be taken by the device or not; what waits can't be.
    expect(new Set(outcomes.filter((outcome) => outcome !== undefined))).toEqual(new Set([error]));
    expect(outcomes.at(-1)).toBe(error);
    expect((error as { code?: string }).code).toMatch(/^(ECONNRESET|ERR_RDMA_WC_.*)$/);
    // What had arrived is delivered, and then comes the cause.
    expect(await rejection(receiveSome(client, 10_000))).toBe(error);
    expect(await rejection(client.send(ball))).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(client.state).toBe('closed');
  });

  test('a server whose client is killed has everything rejected with one cause', async () => {
    const listening = await listen(device);
    const connection = nextConnection(listening.server);
    const { port } = listening;
    const part = {
      role: 'client',
      host: device.address,
      port,
      options: { peerToPeer },
      speaks: true,
    } as const;
    const victim = await startVictim(part);
    const accepted = await connection;
    const sent = flood(accepted);
    await receiveSome(accepted, 20);
    const closed = rejection(accepted.closed);
    const more = flood(accepted);
    await victim.kill();
    const outcomes = [...(await sent), ...(await more)];
    const error = await closed;
    expect(new Set(outcomes.filter((outcome) => outcome !== undefined))).toEqual(new Set([error]));
    expect(outcomes.at(-1)).toBe(error);
    expect(await rejection(receiveSome(accepted, 10_000))).toBe(error);
    expect(listening.server.connections).toBe(0);
  });

  test('a plain connection whose peer is killed comes to its end', async () => {
    const victim = await startVictim(server);
    const client = dial(device, victim.port);
    const sent = client.send(ball);
    await receiveSome(client, 1);
    await sent;
    const received = outcome(client.receive());
    const closed = outcome(client.closed);
    await victim.kill();
    await Promise.all([received, closed]);
    expect(client.state).toBe('closed');
  });

  test('sends to a peer that is stopped wait until their time is up, and go when it dies', async () => {
    const victim = await startVictim(server);
    const client = dial(device, victim.port, { peerToPeer });
    await client.send(ball);
    await receiveSome(client, 1);
    await victim.freeze();
    // Its kernel still takes what it has receives for; the rest waits for credits, and can be called off.
    const sent = flood(client);
    const late = await rejection(client.send(ball, { timeout: 200 }));
    expect(late).toMatchObject({ code: 'ETIMEDOUT' });
    expect(client.state).toBe('established');
    const closed = rejection(client.closed);
    await victim.kill();
    const error = await closed;
    expect((await sent).at(-1)).toBe(error);
  });
});

describe.each(devices)('while it closes over %s', (_, device) => {
  const server = { role: 'server', host: device.address, options: {}, answers: true } as const;

  async function closing(timeout: number) {
    const victim = await startVictim(server);
    const client = dial(device, victim.port, { peerToPeer });
    await client.send(ball);
    await receiveSome(client, 1);
    await victim.freeze();
    const sent = flood(client);
    return { victim, client, sent, received: outcome(client.receive()), closed: client.close({ timeout }) };
  }

  test('a connection whose peer is killed is closed, and has what was queued rejected', async () => {
    const { victim, client, sent, received, closed } = await closing(60_000);
    expect(client.state).toBe('closing');
    await victim.kill();
    await closed;
    expect((await sent).at(-1)).toMatchObject({
      code: expect.stringMatching(/^(ECONNRESET|ERR_RDMA_WC_.*)$/),
    });
    await received;
    expect(client.state).toBe('closed');
  });

  test('a connection whose peer is stopped is closed in time, and has what was queued rejected', async () => {
    const { client, sent, received, closed } = await closing(300);
    await closed;
    expect((await sent).at(-1)).toMatchObject({ code: 'ETIMEDOUT' });
    await received;
    expect(client.state).toBe('closed');
  });
});

describe('when the wire is cut, rxe tells', () => {
  async function cutPair(options: { keepAlive?: { interval: number } }) {
    const { wire, far } = rxeWire();
    const part = { role: 'server', host: far, options: {}, answers: true } as const;
    const victim = await startVictim(part);
    const client = connect({ host: far, port: victim.port, peerToPeer, ...options });
    onTestFinished(() => void client.destroy());
    await client.send(ball);
    await receiveSome(client, 1);
    await wire.partition();
    return client;
  }

  test('a sender that its peer does not acknowledge, and everything is rejected', async () => {
    const client = await cutPair({});
    const closed = rejection(client.closed);
    const outcomes = await flood(client);
    const error = await closed;
    expect(error).toMatchObject({ code: 'ERR_RDMA_WC_RETRY_EXC_ERR' });
    expect(new Set(outcomes)).toEqual(new Set([error]));
  });

  test('an idle side, if it has keepAlive', async () => {
    const client = await cutPair({ keepAlive: { interval: 100 } });
    const received = rejection(client.receive());
    const error = await rejection(client.closed);
    expect(error).toMatchObject({ code: 'ERR_RDMA_WC_RETRY_EXC_ERR' });
    expect(await received).toBe(error);
  });
});
