// mckey in Node: datagrams to a multicast group, as librdmacm's mckey(1) sends them. See README.md beside it.
import { parseArgs } from 'node:util';
import { CmId, EventChannel } from 'node-rdma/cm';
import { AddressHandle } from 'node-rdma/verbs';
import { Datagrams } from './datagrams.js';

const { values: options } = parseArgs({
  options: {
    group: { type: 'string', short: 'm', default: '239.1.2.3' },
    bind: { type: 'string', short: 'b' },
    sender: { type: 'boolean', short: 's', default: false },
    'send-only': { type: 'boolean', short: 'o', default: false },
    count: { type: 'string', short: 'C', default: '10' },
    size: { type: 'string', short: 'S', default: '100' },
  },
});
const count = Number(options.count);
const size = Number(options.size);

const channel = new EventChannel();
const id = new CmId(channel, { portSpace: 'UDP' });
// The way to a group is that of its network device.
const source = options.bind === undefined ? {} : { source: { address: options.bind, port: 0 } };
await id.resolveAddress({ address: options.group, port: 0 }, source);
const datagrams = new Datagrams(id, size, count);
const receiving = options.sender ? [] : datagrams.receive(count);
const group = await id.joinMulticast(options.group, { sendOnly: options['send-only'] });
if (options.sender) {
  const addressHandle = new AddressHandle(datagrams.pd, group.addressVector);
  await datagrams.send(new Uint8Array(size), count, { ...group, addressHandle });
  console.log(`mckey: ${count} datagrams sent to ${group.address}`);
} else {
  const received = await Promise.all(receiving);
  const senders = new Set(received.map(({ immediate }) => immediate));
  const sizes = new Set(received.map(({ data }) => data.length));
  console.log(
    `mckey: ${received.length} datagrams of ${[...sizes].join(', ')} bytes from ${senders.size} queue pairs`,
  );
}
await group.leave();
await id.close();
await datagrams.close();
await channel.close();
