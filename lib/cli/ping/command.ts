import { Command, Option } from 'commander';
import type { Negotiate, Rtr, ServerPeerToPeer } from '../../index.js';
import { exitStatus } from '../exit-status.js';
import { onInterrupt } from '../interrupt.js';
import { seconds, wholeNumber } from '../numeric-option.js';
import { Output } from '../output.js';
import { pingHost } from './client.js';
import { defaultPort, textLimits } from './protocol.js';
import { listenForPings } from './server.js';

interface Flags {
  listen?: true;
  once?: true;
  port: number;
  ipv4?: true;
  ipv6?: true;
  count?: number;
  size: number;
  interval: number;
  timeout: number;
  peerToPeer?: true;
  negotiate: Negotiate;
  rtr: Rtr;
  quiet?: true;
  verbose?: true;
  histogram?: true;
  json?: true;
}

/** What a server makes of `--negotiate`. */
const answers: Readonly<Record<Negotiate, ServerPeerToPeer>> = {
  require: 'require',
  prefer: 'accept',
  off: false,
};

const { minimum, maximum } = textLimits;

/** `node-rdma ping`. */
export function pingCommand(): Command {
  return new Command('ping')
    .summary('ping a host over RDMA, or answer pings')
    .description(
      "Sends pings by rping's protocol (Send, RDMA Read, RDMA Write), and so pings rdma-core's rping, or is pinged by it.",
    )
    .argument('[host]', 'whom to ping; with --listen the address to listen on (default: every IPv4 address)')
    .option('-l, --listen', 'answer pings')
    .option('--once', 'with --listen: end behind the first client')
    .option('-p, --port <port>', 'port', wholeNumber({ minimum: 0, maximum: 65535 }), defaultPort)
    .option('-4, --ipv4', 'look for IPv4 addresses of the host')
    .option('-6, --ipv6', 'look for IPv6 addresses of the host')
    .option(
      '-c, --count <n>',
      'end after n pings (default: at an interrupt)',
      wholeNumber({ minimum: 1, maximum: 1e9 }),
    )
    .option(
      '-s, --size <bytes>',
      `text of each ping, ${minimum} to ${maximum}`,
      wholeNumber({ minimum, maximum }),
      64,
    )
    .addOption(
      new Option('-i, --interval <seconds>', 'from one ping to the next')
        .argParser(seconds({ minimum: 0, maximum: 86_400 }))
        .default(1000, '1'),
    )
    .addOption(
      new Option('-W, --timeout <seconds>', 'wait so long for the connection, and for each answer')
        .argParser(seconds({ minimum: 0.001, maximum: 86_400 }))
        .default(10_000, '10'),
    )
    .option('--peer-to-peer', 'connect with peerToPeer')
    .addOption(
      new Option(
        '--negotiate <how>',
        'whether the other side must take part in peer-to-peer; with --listen, whether this one does',
      )
        .choices(['require', 'prefer', 'off'])
        .default('prefer'),
    )
    .addOption(
      new Option('--rtr <what>', 'with --peer-to-peer: what is sent first')
        .choices(['read', 'write', 'send'])
        .default('read'),
    )
    .option('-q, --quiet', 'only the summary')
    .option('-v, --verbose', 'show each text')
    .option('--histogram', 'draw how long the pings took')
    .option('--json', 'one JSON object a line')
    .addHelpText(
      'after',
      `
Examples:
  node-rdma ping --listen                       answer pings on one host
  node-rdma ping 10.0.0.1 --count 10            ping it from another
  node-rdma ping 10.0.0.1 -i 0 -c 10000 -q --histogram
  rping -s -v                                   C's rping answers as well

Exit status: 0 all came back, 1 they did not, 2 wrong usage.`,
    )
    .action(async (host: string | undefined, flags: Flags, command: Command) => {
      if (flags.listen === undefined && host === undefined)
        command.error('error: a host to ping is missing, or --listen');
      if (flags.listen === undefined && flags.port === 0)
        command.error('error: a port to connect to is from 1 to 65535');
      process.exitCode = (await perform(host, flags)) ? exitStatus.success : exitStatus.failure;
    });
}

async function perform(host: string | undefined, flags: Flags): Promise<boolean> {
  const output = new Output(flags.json ?? false);
  const { port, quiet = false, verbose = false, negotiate, rtr } = flags;
  const interrupted = onInterrupt();
  if (host === undefined || flags.listen) {
    const options = { host, port, once: flags.once ?? false, quiet, verbose, peerToPeer: answers[negotiate] };
    return listenForPings(options, output, interrupted);
  }
  const options = {
    ...{ host, port, quiet, verbose, size: flags.size, interval: flags.interval, timeout: flags.timeout },
    count: flags.count ?? Number.POSITIVE_INFINITY,
    family: familyOf(flags),
    peerToPeer: flags.peerToPeer ? { negotiate, rtr } : (false as const),
    histogram: flags.histogram ?? false,
  };
  return pingHost(options, output, interrupted);
}

function familyOf({ ipv4, ipv6 }: Flags): 0 | 4 | 6 {
  if (ipv4 === ipv6) return 0;
  return ipv4 ? 4 : 6;
}
