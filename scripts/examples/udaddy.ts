// udaddy in Node: datagrams there and back, as librdmacm's udaddy(1) sends them. See README.md beside it.
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { type CmEvent, CmId, EventChannel } from 'node-rdma/cm';
import { AddressHandle } from 'node-rdma/verbs';
import { Datagrams } from './datagrams.js';

const { values: options } = parseArgs({
  options: {
    server: { type: 'string', short: 's' },
    bind: { type: 'string', short: 'b' },
    count: { type: 'string', short: 'C', default: '10' },
    size: { type: 'string', short: 'S', default: '100' },
  },
});
const count = Number(options.count);
const size = Number(options.size);
const port = 7174;
const channel = new EventChannel();

/** Asks the server where it is, sends to it, and takes what comes back. */
async function runClient(server: string): Promise<void> {
  const id = new CmId(channel, { portSpace: 'UDP' });
  const source = options.bind === undefined ? {} : { source: { address: options.bind, port: 0 } };
  await id.resolveAddress({ address: server, port }, source);
  await id.resolveRoute();
  const datagrams = new Datagrams(id, size, count);
  const received = datagrams.receive(count);
  const established = once(id, 'established') as Promise<[CmEvent]>;
  await id.connect();
  const { addressVector, ...where } = (await established)[0].datagram!;
  const destination = { ...where, addressHandle: new AddressHandle(datagrams.pd, addressVector) };
  await datagrams.send(new Uint8Array(size), count, destination);
  report('client', await Promise.all(received));
  await id.close();
  await datagrams.close();
}

/** Answers one client: with as many datagrams as have come, to where the first of them came from. */
async function runServer(): Promise<void> {
  const listener = new CmId(channel, { portSpace: 'UDP' });
  listener.bind({ address: options.bind ?? '0.0.0.0', port });
  listener.listen();
  const [, id] = (await once(listener, 'connect-request')) as [CmEvent, CmId];
  const datagrams = new Datagrams(id, size, count);
  const receiving = datagrams.receive(count);
  id.accept();
  const received = await Promise.all(receiving);
  const { source, message, immediate } = received[0]!;
  const destination = {
    addressHandle: AddressHandle.toSource(datagrams.pd, source, message, id.info.portNumber),
    queuePairNumber: immediate ?? source.queuePairNumber,
    qkey: id.queuePairAttributes('INIT').qkey!,
  };
  await datagrams.send(new Uint8Array(size), count, destination);
  report('server', received);
  await id.close();
  await datagrams.close();
}

function report(role: string, received: readonly { data: Uint8Array }[]): void {
  const sizes = new Set(received.map(({ data }) => data.length));
  console.log(`udaddy ${role}: ${received.length} datagrams of ${[...sizes].join(', ')} bytes`);
}

await (options.server === undefined ? runServer() : runClient(options.server));
await channel.close();
