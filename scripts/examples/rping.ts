// rping in Node: speaks the protocol of librdmacm's rping, as client and as server. See README.md beside it.
import { parseArgs } from 'node:util';
import {
  type Connection,
  connect,
  createServer,
  type Negotiate,
  type Rtr,
  type ServerPeerToPeer,
} from 'node-rdma';
import { answerPings, ping, textLimits } from './rping-protocol.js';

const usage = `Usage: rping (-s | -c) [options]

  -s, --server           answer the pings of one client
  -c, --client           ping a server
  -a, --address HOST     the server's address, IPv4 or IPv6; a server's default is every IPv4 address
  -p, --port PORT        default 7174
  -S, --size BYTES       of the text, ${textLimits.minimum} to ${textLimits.maximum} (64); a client's
  -C, --count N          pings (10); a client's
  -P, --persistent       a server that goes on after its first client
  -v, --verbose          show each text
  --peer-to-peer         connect with peerToPeer; a client's
  --negotiate HOW        require, prefer (the default) or off: how a client asks for peerToPeer, how a server answers
  --rtr WHAT             read (the default), write or send, with --peer-to-peer; a client's
`;

function fail(message: string): never {
  process.stderr.write(`rping: ${message}\n${usage}`);
  process.exit(2);
}

function parse() {
  try {
    return parseArgs({
      options: {
        server: { type: 'boolean', short: 's' },
        client: { type: 'boolean', short: 'c' },
        address: { type: 'string', short: 'a' },
        port: { type: 'string', short: 'p', default: '7174' },
        size: { type: 'string', short: 'S', default: '64' },
        count: { type: 'string', short: 'C', default: '10' },
        persistent: { type: 'boolean', short: 'P', default: false },
        verbose: { type: 'boolean', short: 'v', default: false },
        'peer-to-peer': { type: 'boolean', default: false },
        negotiate: { type: 'string', default: 'prefer' },
        rtr: { type: 'string', default: 'read' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    return fail((error as Error).message);
  }
}

const options = parse();

function numberOf(name: 'port' | 'size' | 'count', minimum: number, maximum: number): number {
  const value = Number(options[name]);
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  return fail(`--${name} takes a whole number from ${minimum} to ${maximum}`);
}

/** What a server makes of `--negotiate`. */
const answers: Readonly<Record<string, ServerPeerToPeer>> = {
  require: 'require',
  prefer: 'accept',
  off: false,
};

/** Two messages on their way are all that rping ever has; C's own servers expect depths of 1 for Reads. */
const queues = { sendDepth: 16, receiveDepth: 16, responderResources: 1, initiatorDepth: 1 };

function show(text: string): void {
  if (options.verbose) console.log(`ping data: ${text}`);
}

function tellHandshake({ peerToPeer }: Connection): void {
  const { requested, negotiated, rtr } = peerToPeer;
  if (requested) console.log(`peer-to-peer: ${negotiated ? 'negotiated' : 'not negotiated'}, rtr ${rtr}`);
}

async function runClient(): Promise<void> {
  if (options.address === undefined) fail('a client needs --address');
  const pings = {
    count: numberOf('count', 1, Number.MAX_SAFE_INTEGER),
    size: numberOf('size', textLimits.minimum, textLimits.maximum),
  };
  const connection = connect({
    host: options.address,
    port: numberOf('port', 1, 65535),
    ...queues,
    // The values are checked where they are used: an unknown one is an error with its name.
    peerToPeer: options['peer-to-peer'] && {
      negotiate: options.negotiate as Negotiate,
      rtr: options.rtr as Rtr,
    },
  });
  await ping(connection, pings, show);
  tellHandshake(connection);
  await connection.close();
  console.log(`client: ${pings.count} pings of ${pings.size} bytes came back unchanged`);
}

async function serve(connection: Connection): Promise<void> {
  const count = await answerPings(connection, show);
  tellHandshake(connection);
  console.log(`server: ${count} pings answered`);
}

async function runServer(): Promise<void> {
  const peerToPeer = answers[options.negotiate];
  if (peerToPeer === undefined) fail(`--negotiate takes ${Object.keys(answers).join(', ')}`);
  const server = createServer({ ...queues, peerToPeer });
  const ended = new Promise<void>((resolve, reject) => {
    server.on('clientError', (error) => {
      if (options.persistent) console.error(`rping: ${error.message}`);
      else reject(error);
    });
    server.on('connection', (connection) => {
      const served = serve(connection);
      if (options.persistent) served.catch((error: Error) => console.error(`rping: ${error.message}`));
      else served.then(resolve, reject);
    });
  });
  await server.listen({
    port: numberOf('port', 0, 65535),
    ...(options.address === undefined ? {} : { host: options.address }),
  });
  console.log(`server: listening on port ${server.address()!.port}`);
  try {
    await ended;
  } finally {
    await server.close();
  }
}

if (options.help) {
  process.stdout.write(usage);
} else {
  if (options.server === options.client) fail('one of --server and --client is needed');
  try {
    await (options.server ? runServer() : runClient());
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    process.stderr.write(`rping: ${code === undefined ? '' : `${code}: `}${message}\n`);
    process.exitCode = 1;
  }
}
