// Twelve messages come at once; the handlers of three throw. Tells the order of the handlers and what was thrown.
import { rings } from 'node-rdma/verbs';
import { connectPair } from '../../support/verbs/endpoint.js';

const [device, address] = process.argv.slice(2);
const caught: string[] = [];
process.on('uncaughtException', (error) => {
  caught.push(error.message);
});

const pair = await connectPair({ device: device!, address: address!, iwarp: true });
const { passive, active } = pair;
const order: number[] = [];
const all = new Promise<void>((resolve) => {
  for (let i = 0; i < 12; i++) {
    const complete = () => {
      order.push(i);
      if (order.length === 12) resolve();
      if (i === 2 || i === 5 || i === 6) throw new Error(`message ${i}`);
    };
    passive.queuePair.post(
      { opcode: 'receive', sges: [{ region: passive.memory, length: 64 }] },
      { complete },
    );
  }
});
rings().requests.flush();
await Promise.all(Array.from({ length: 12 }, () => active.send(1)));
await all;
await pair.close();
console.log(JSON.stringify({ order, caught }));
