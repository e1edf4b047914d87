// One side of an exchange, in a process of its own. Both sides speak as soon as they have a connection.
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, connect, createServer, type RdmaError } from 'node-rdma';
import { messageOf, type Script } from './messages.js';
import { type ExchangeNews, type ExchangeTask, emptyReport } from './report.js';

const task = JSON.parse(process.argv[2]!) as ExchangeTask;
const report = emptyReport();

function tell(news: ExchangeNews): Promise<void> {
  return new Promise((resolve) => process.send!(news, () => resolve()));
}

function scriptOf(connection: number, side: Script['side']): Script {
  const heavy = connection < task.heavy;
  return { connection, side, count: heavy ? task.heavyMessages : task.messages, largest: heavy ? 8192 : 64 };
}

async function sendAll(connection: Connection, script: Script): Promise<void> {
  for (let sequence = 0; sequence < script.count; sequence++)
    await connection.send(messageOf(script, sequence));
}

async function receiveAll(connection: Connection, script: Script): Promise<void> {
  let received = 0;
  try {
    for (; received < script.count; received++) {
      const message = await connection.receive();
      if (message === null) break;
      report.received++;
      if (!message.equals(messageOf(script, received))) report.wrong++;
      // The reader of many messages is slower than their sender.
      if (script.count > 1) await delay(1);
    }
  } finally {
    report.lost += script.count - received;
  }
}

async function run(connection: Connection, number: number): Promise<void> {
  const other = task.side === 'active' ? 'passive' : 'active';
  try {
    const sending = sendAll(connection, scriptOf(number, task.side));
    const results = await Promise.allSettled([sending, receiveAll(connection, scriptOf(number, other))]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    if (task.side === 'active') {
      await connection.close();
    } else {
      const extra = await connection.receive();
      if (extra !== null) report.wrong++;
      await connection.closed;
    }
    report.completed++;
  } catch (error) {
    const code = (error as RdmaError).code ?? String(error);
    report.failed[code] = (report.failed[code] ?? 0) + 1;
    connection.destroy();
  }
  if (connection.peerToPeer.kicked) report.kicked++;
  if (connection.peerToPeer.negotiated) report.negotiated++;
}

function numberAsData(number: number): Uint8Array {
  const data = Buffer.alloc(4);
  data.writeUInt32BE(number);
  return data;
}

async function beActive(): Promise<void> {
  const { address: host, port, peerToPeer, timeout } = task;
  let next = 0;
  const lanes = Array.from({ length: task.parallel }, async () => {
    while (next < task.connections) {
      const number = next++;
      const privateData = numberAsData(number);
      await run(connect({ host, port, peerToPeer, timeout, privateData, receiveDepth: 16 }), number);
    }
  });
  await Promise.all(lanes);
}

async function bePassive(): Promise<void> {
  const under = new Set<Promise<void>>();
  const server = createServer({ receiveDepth: 16, timeout: task.timeout }, (connection) => {
    const number = Buffer.from(connection.privateData!).readUInt32BE();
    const running = run(connection, number).finally(() => under.delete(running));
    under.add(running);
  });
  await server.listen({ host: task.address, port: task.port });
  await tell({ listening: server.address()!.port });
  await new Promise((resolve) => process.once('message', resolve));
  await Promise.all(under);
  await server.close();
}

await (task.side === 'active' ? beActive() : bePassive());
await tell({ report });
process.disconnect();
