import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer as createTcpServer } from 'node:net';
import { type Connection, connect, createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dial, listen } from '../support/connection-pair.js';
import { devices, siw } from '../support/devices.js';
import { listenOn } from '../support/mpa/remote-peer.js';
import { startVictim } from '../support/victim-process.js';
import { rxeWire } from '../support/victim-wire.js';
import { type Witness, witness } from '../support/victim-witness.js';
import { answer, privateDataOf } from '../support/wire-peer.js';

/** Everything was rejected, and with one error, which is returned. */
async function expectOneCause({ ready, closed, queued, received }: Witness): Promise<Error> {
  const error = await closed;
  expect(error).toBeInstanceOf(Error);
  for (const one of [await ready, await received, ...(await queued)]) expect(one).toBe(error);
  return error!;
}

/** Resolves when the handshake of a connection of this process takes a step. */
function stepOf(wanted: string): Promise<void> {
  return new Promise((resolve) => {
    const listener = (message: unknown) => {
      if ((message as { step: string }).step === wanted) resolve();
    };
    subscribe('rdma:connection:step', listener);
    onTestFinished(() => void unsubscribe('rdma:connection:step', listener));
  });
}

describe.each(devices)('everything that a client over %s waits for is rejected', (_, device) => {
  const server = { role: 'server', host: device.address, options: {} } as const;

  test.each([
    ['plain', {}],
    ['peer-to-peer', { peerToPeer: true }],
  ])('when the server is killed before it answers a %s request', async (_, options) => {
    const victim = await startVictim({ ...server, answers: false });
    const client = dial(device, victim.port, { ...options, timeout: 30_000 });
    const promises = witness(client);
    await victim.asked;
    await victim.kill();
    const error = await expectOneCause(promises);
    expect(await promises.established).toBe(error);
    expect((error as { code?: string }).code).toMatch(/^(ECONN.*|ERR_RDMA_REJECTED)$/);
    expect(client.state).toBe('closed');
  });

  test('when the server is stopped and does not answer in time', async () => {
    const victim = await startVictim({ ...server, answers: true });
    await victim.freeze();
    const client = dial(device, victim.port, { peerToPeer: true, timeout: 500 });
    const promises = witness(client);
    const error = await expectOneCause(promises);
    expect(error).toMatchObject({ code: 'ETIMEDOUT' });
    expect(await promises.established).toBe(error);
  });

  test.each(['connecting', 'readPosted'])(
    'or reached when the server is killed at the step %s',
    async (step) => {
      const victim = await startVictim({ ...server, answers: true });
      const client = dial(device, victim.port, { peerToPeer: true });
      const promises = witness(client);
      await stepOf(step);
      await victim.kill();
      await Promise.all(Object.values(promises));
      expect(client.state).toBe('closed');
    },
  );
});

describe.each(devices)('everything that a server over %s waits for is rejected', (_, device) => {
  test('when the client is killed before it is accepted', async () => {
    const { server, port } = await listen(device);
    const asked = new Promise<Connection>((resolve, reject) => {
      server.once('request', (request) => {
        victim.then(({ kill }) => kill()).then(() => resolve(request.accept({ timeout: 2000 })), reject);
      });
    });
    const options = { peerToPeer: true };
    const victim = startVictim({ role: 'client', host: device.address, port, options, speaks: true });
    const accepted = await asked;
    const promises = witness(accepted);
    const error = await expectOneCause(promises);
    expect(await promises.established).toBe(error);
    expect(accepted.state).toBe('closed');
    expect(server.connections).toBe(0);
  });
});

describe('everything is rejected when the Response is withheld', () => {
  test('and the peer on siw is killed after it has got the Read and GO', async () => {
    const peer = await listenOn({ command: (argv) => argv }, { host: siw.address });
    onTestFinished(() => peer.kill());
    const client = dial(siw, peer.localAddress.port, { peerToPeer: true });
    const promises = witness(client);
    await peer.receiveRequest();
    await peer.sendReply({ privateData: privateDataOf(answer()) });
    await peer.expectReadRequest0();
    await peer.expectSend();
    await peer.kill();
    const error = await expectOneCause(promises);
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(await promises.established).toBe(undefined);
  });

  test('and the peer on rxe is killed while the Read is on its way', async () => {
    const { wire, far } = rxeWire();
    const victim = await startVictim({ role: 'server', host: far, options: {}, answers: true });
    await wire.shape({ delay: 500 });
    const client = connect({ host: far, port: victim.port, peerToPeer: true });
    const promises = witness(client);
    await stepOf('readPosted');
    await victim.kill();
    const error = await expectOneCause(promises);
    expect((error as { code?: string }).code).toMatch(/^(ECONNRESET|ERR_RDMA_WC_.*)$/);
    expect(await promises.established).toBe(undefined);
  });
});

test('the loop goes on, and all is settled at once, when a peer that says nothing is given up', async () => {
  const silent = createTcpServer((socket) => socket.on('error', () => {}));
  onTestFinished(() => void silent.close());
  silent.listen(0, siw.address);
  await new Promise((resolve) => silent.once('listening', resolve));
  const client = dial(siw, (silent.address() as { port: number }).port, { timeout: 300 });
  const promises = witness(client);
  await promises.established;
  const start = performance.now();
  await expectOneCause(promises);
  // siw itself goes on waiting for the reply, and whoever disconnects or destroys, for 10 seconds (MPAREQ_TIMEOUT): a
  // timer that comes in time shows that the loop is not held.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(performance.now() - start).toBeLessThan(3000);
});

test('a server that is closed leaves no client waiting that it did not answer', async () => {
  const server = createServer();
  await server.listen({ host: siw.address });
  const asked = new Promise((resolve) => server.once('request', resolve));
  const promises = witness(dial(siw, server.address()!.port, { peerToPeer: true }));
  await asked;
  await server.close();
  await expectOneCause(promises);
});
