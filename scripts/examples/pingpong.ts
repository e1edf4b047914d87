// ibv_rc_pingpong, ibv_srq_pingpong and ibv_ud_pingpong in Node, as server and as client. See README.md beside it.
import { parseArgs } from 'node:util';
import { type Kind, PingpongEndpoint } from './pingpong-endpoint.js';
import { exchangeAsClient, exchangeAsServer } from './pingpong-exchange.js';

const usage = `Usage: pingpong (rc | srq | ud) [options] [HOST]

Without HOST a server, else its client.

  -d, --ib-dev NAME      the device
  -g, --gid-idx INDEX    of the device's own GID (0); RoCE needs one
  -p, --port PORT        where the queue pairs are told over TCP (18515)
  -s, --size BYTES       of a message (1024)
  -n, --iters N          messages each way (1000)
  -r, --rx-depth N       receives posted (500)
  -q, --num-qp N         queue pairs, of srq (16)
`;

function fail(message: string): never {
  process.stderr.write(`pingpong: ${message}\n${usage}`);
  process.exit(2);
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        'ib-dev': { type: 'string', short: 'd' },
        'gid-idx': { type: 'string', short: 'g', default: '0' },
        port: { type: 'string', short: 'p', default: '18515' },
        size: { type: 'string', short: 's', default: '1024' },
        iters: { type: 'string', short: 'n', default: '1000' },
        'rx-depth': { type: 'string', short: 'r', default: '500' },
        'num-qp': { type: 'string', short: 'q', default: '16' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { values: options, positionals } = parse();
const [kind, host] = positionals;
const kinds: readonly string[] = ['rc', 'srq', 'ud'] satisfies Kind[];

function numberOf(name: 'gid-idx' | 'port' | 'size' | 'iters' | 'rx-depth' | 'num-qp', min: number): number {
  const value = Number(options[name]);
  return Number.isInteger(value) && value >= min ? value : fail(`--${name} takes a number from ${min}`);
}

/**
 * Each queue pair sends again when its last message has gone and one has come; a client's sends first. Ends when both
 * counts are reached.
 */
function play(endpoint: PingpongEndpoint, count: number, first: boolean, iterations: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = 1;
    const receiving = 2;
    const pending = Array.from({ length: count }, () => receiving);
    let sent = 0;
    let received = 0;
    const send = (index: number) => {
      pending[index] = sending | receiving;
      endpoint.send(index, hasSent, reject);
    };
    const settle = (index: number, what: number) => {
      pending[index]! &= ~what;
      if (sent >= iterations && received >= iterations) resolve();
      else if (pending[index] === 0 && sent < iterations) send(index);
    };
    const hasSent = (index: number) => {
      sent++;
      settle(index, sending);
    };
    endpoint.receive((index) => {
      received++;
      settle(index, receiving);
    }, reject);
    if (first) for (let index = 0; index < count; index++) send(index);
  });
}

async function run(): Promise<void> {
  if (options['ib-dev'] === undefined) fail('--ib-dev is needed');
  const queuePairs = kind === 'srq' ? numberOf('num-qp', 1) : 1;
  const [size, iterations, port] = [numberOf('size', 1), numberOf('iters', 1), numberOf('port', 0)];
  const endpoint = new PingpongEndpoint({
    kind: kind as Kind,
    device: options['ib-dev'],
    gidIndex: numberOf('gid-idx', 0),
    size,
    depth: numberOf('rx-depth', 1),
    queuePairs,
  });
  let playing: Promise<void> | undefined;
  // The peer may send as soon as it knows that the queue pairs are ready.
  const prepare: Parameters<typeof exchangeAsClient>[3] = (peers) => {
    endpoint.prepare(peers);
    if (host === undefined) playing = play(endpoint, queuePairs, false, iterations);
  };
  if (host === undefined) {
    await exchangeAsServer(port, endpoint.whereabouts, prepare, (listening) =>
      console.log(`listening on port ${listening}`),
    );
  } else {
    await exchangeAsClient(host, port, endpoint.whereabouts, prepare);
    playing = play(endpoint, queuePairs, true, iterations);
  }
  await playing;
  console.log(`${iterations} messages of ${size} bytes each way`);
  await endpoint.close();
}

if (options.help) {
  process.stdout.write(usage);
} else {
  if (kind === undefined || !kinds.includes(kind)) fail(`the first word is one of ${kinds.join(', ')}`);
  try {
    await run();
  } catch (error) {
    process.stderr.write(`pingpong: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
