import { connect, createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { devices, siw } from '../support/devices.js';

describe.each(devices)('an address that can not be used, on %s,', (_, { address }) => {
  test.each([
    [undefined, undefined],
    [undefined, address],
    [address, undefined],
    [address, address],
  ])('is in use: a listener on %s, and another on %s', async (first, second) => {
    const [held, refused] = [createServer(), createServer()];
    onTestFinished(async () => {
      await Promise.all([held.close(), refused.close()]);
    });
    await held.listen(first === undefined ? {} : { host: first });
    const { port } = held.address()!;
    const host = second ?? '0.0.0.0';
    await expect(refused.listen({ host, port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
      address: host,
      port,
      message: expect.stringContaining(`${host}:${port}`),
    });
  });

  test('is none of this host: the error names it', async () => {
    const server = createServer();
    onTestFinished(() => server.close());
    await expect(server.listen({ host: '192.0.2.1', port: 7471 })).rejects.toMatchObject({
      address: '192.0.2.1',
      port: 7471,
      message: expect.stringContaining('192.0.2.1:7471'),
    });
  });
});

test.each([
  ['127.0.0.1', 'EINVAL', 'belongs to a device'],
  ['192.0.2.1', 'ENETUNREACH', 'no route'],
])('connecting to %s, where no device leads, fails with %s and the cure', async (host, code, cure) => {
  await expect(connect({ host, port: 7471 }).established).rejects.toMatchObject({
    code,
    address: host,
    port: 7471,
    message: expect.stringMatching(new RegExp(`${host}:7471.*${cure}`)),
  });
});

test('a plain client learns that the server may want peerToPeer', async () => {
  const server = createServer({ peerToPeer: 'require' });
  onTestFinished(() => server.close());
  await server.listen({ host: siw.address });
  const { port } = server.address()!;
  await expect(connect({ host: siw.address, port }).established).rejects.toMatchObject({
    code: 'ERR_RDMA_REJECTED',
    message: expect.stringContaining('peerToPeer'),
  });
});
