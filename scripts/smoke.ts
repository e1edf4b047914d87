// smoke.js ADDRESS...: connects to itself by each address, and sends a message there and back. For systems on which the
// tests do not run.
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node-rdma';
import { getDevices } from 'node-rdma/cm';
import { Device } from 'node-rdma/verbs';

async function echo(host: string): Promise<string> {
  const server = createServer(async (connection) => {
    for await (const message of connection) await connection.send(message);
  });
  await server.listen({ host, port: 0 });
  const connection = connect({ host, port: server.address()!.port, peerToPeer: true });
  const sent = Buffer.from(`over ${host}`);
  await connection.send(sent);
  const received = await connection.receive();
  await connection.close();
  await server.close();
  if (received === null || !sent.equals(received)) throw new Error(`${host} sent back ${received}`);
  return received.toString();
}

const system = /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
const devices = getDevices().map((name) => {
  const device = Device.open(name);
  const { transport, atomics } = device.capabilities;
  void device.close();
  return `${name} (${transport}${atomics ? ', atomics' : ''})`;
});
console.log(`${system}: ${devices.join(', ')}`);
for (const host of process.argv.slice(2)) console.log(`  ${await echo(host)}`);
