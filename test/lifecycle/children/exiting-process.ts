// Ends this process in the way that its first argument names, with a connection that is busy.
import { rings } from 'node-rdma/verbs';
import type { GuestDevice } from '../../support/devices.js';
import { connectPair, type Endpoint } from '../../support/verbs/endpoint.js';

const [mode, name, address] = process.argv.slice(2);
const device: GuestDevice = { device: name!, address: address!, iwarp: true };
const pair = await connectPair(device);
const { active, passive } = pair;

function bounce(from: Endpoint, to: Endpoint): void {
  const next = { complete: () => bounce(to, from) };
  to.queuePair.post({ opcode: 'receive', sges: [{ region: to.memory, length: 64 }] }, next);
  from.queuePair.post({ opcode: 'send', sges: [{ region: from.memory, length: 8 }] }, { complete: () => {} });
}

const modes: Record<string, () => void> = {
  exit() {
    bounce(active, passive);
    setImmediate(() => process.exit(7));
  },
  'exit in a handler'() {
    const sges = [{ region: passive.memory, length: 64 }];
    passive.queuePair.post({ opcode: 'receive', sges }, { complete: () => process.exit(7) });
    void active.send(1);
  },
  'uncaught exception'() {
    bounce(active, passive);
    setImmediate(() => {
      throw new Error('nobody catches this');
    });
  },
  'uncaught exception in a handler'() {
    const complete = () => {
      throw new Error('nobody catches this');
    };
    passive.queuePair.post(
      { opcode: 'receive', sges: [{ region: passive.memory, length: 64 }] },
      { complete },
    );
    void active.send(1);
  },
  SIGTERM() {
    bounce(active, passive);
    setImmediate(() => process.kill(process.pid, 'SIGTERM'));
  },
  closed() {
    void pair.close();
  },
  unreferenced() {
    for (const { id, cq } of [active, passive]) {
      id.channel.unref();
      cq.unref();
    }
  },
  'unreferenced with receives posted'() {
    for (const end of [active, passive]) {
      end.queuePair.post(
        { opcode: 'receive', sges: [{ region: end.memory, length: 64 }] },
        { complete: () => {} },
      );
      end.id.channel.unref();
      end.cq.unref();
    }
    rings().requests.flush();
  },
};

process.on('exit', (code) => console.log(`exit ${code}`));
modes[mode!]!();
