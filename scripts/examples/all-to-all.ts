// Every rank of a job speaks first to every other one, at a moment of its own, and checks what it hears. See README.md.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Connection } from 'node-rdma';
import { joinJob } from 'node-rdma/job';

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '20' },
    // Milliseconds within which a rank turns to each of the others, at random.
    spread: { type: 'string', default: '500' },
  },
});
const messages = Number(values.messages);
const spread = Number(values.spread);

/** Message `number` from one rank to another: its origin, and content that both can work out. */
function compose(from: number, to: number, number: number): Buffer {
  const message = Buffer.alloc(12 + ((number * 97) % 2000));
  message.writeUInt32BE(from, 0);
  message.writeUInt32BE(to, 4);
  message.writeUInt32BE(number, 8);
  const seed = createHash('sha256').update(message.subarray(0, 12)).digest();
  for (let i = 12; i < message.length; i++) message[i] = seed[i % seed.length]! ^ (i & 0xff);
  return message;
}

await using job = await joinJob();

async function speak(connection: Connection, rank: number): Promise<void> {
  for (let number = 0; number < messages; number++) await connection.send(compose(job.rank, rank, number));
}

/** How many messages came as they were sent, each in its turn. */
async function listen(connection: Connection, rank: number): Promise<number> {
  for (let number = 0; number < messages; number++) {
    const message = await connection.receive();
    if (message === null) throw new Error(`rank ${rank} left after ${number} messages`);
    if (!message.equals(compose(rank, job.rank, number))) {
      throw new Error(`message ${number} from rank ${rank} is not what it sent`);
    }
  }
  return messages;
}

await job.listen();
const others = [...Array(job.size).keys()].filter((rank) => rank !== job.rank);
const received = await Promise.all(
  others.map(async (rank) => {
    await delay(Math.random() * spread);
    const connection = await job.connect(rank, { timeout: 60_000 });
    const [, count] = await Promise.all([speak(connection, rank), listen(connection, rank)]);
    return count;
  }),
);
// Until all are through, a message that should not be there can still come.
await job.fence({ timeout: 60_000 });
const extra = [...job.connections].filter(([rank, { bytesRead }]) => bytesRead > expected(rank));

function expected(rank: number): number {
  let bytes = 0;
  for (let number = 0; number < messages; number++) bytes += compose(rank, job.rank, number).length;
  return bytes;
}

const { rank, size } = job;
const total = received.reduce((sum, count) => sum + count, 0);
const connections = job.connections.size;
console.log(JSON.stringify({ rank, size, connections, received: total, duplicated: extra.length }));
