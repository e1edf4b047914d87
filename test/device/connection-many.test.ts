import { type Connection, connect } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen, take } from '../support/connection-pair.js';
import { devices } from '../support/devices.js';

const count = 200;

describe.each(devices)('many connections over %s', (_, device) => {
  test(`${count} of them are open at once in one process, and each exchanges messages`, async () => {
    const { server, port } = await listen(device);
    server.on('connection', async (accepted) => {
      for await (const message of accepted) await accepted.send(message);
    });
    const open: Connection[] = [];
    onTestFinished(() => Promise.all(open.map((client) => client.close())).then(() => {}));
    for (let i = 0; i < count; i++) {
      const client = connect({ host: device.address, port, peerToPeer: true });
      open.push(client);
      await client.ready;
    }
    expect(server.connections).toBe(count);
    const exchanges = open.map(async (client, i) => {
      await client.send(Buffer.from(`message ${i}`));
      return take(client, 1);
    });
    expect(await Promise.all(exchanges)).toEqual(open.map((_, i) => [`message ${i}`]));
  }, 240_000);
});
