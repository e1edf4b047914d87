import { Command, Option } from 'commander';
import { onInterrupt } from '../interrupt.js';
import { bytes, seconds, wholeNumber } from '../numeric-option.js';
import { Output } from '../output.js';
import { measure } from './client.js';
import { defaultPort, depthLimits, type Operation, operations, sizeLimits } from './request.js';
import { listenForPerf } from './server.js';

interface Flags {
  listen?: true;
  port: number;
  bandwidth?: true;
  operation: Operation;
  size?: number;
  depth: number;
  duration: number;
  peerToPeer?: true;
  histogram?: true;
  json?: true;
}

/** Bytes, unless `--size` says otherwise. */
const sizes = { latency: 64, bandwidth: 64 * 1024 } as const;

/** `node-rdma perf`. */
export function perfCommand(): Command {
  return new Command('perf')
    .summary('latency and bandwidth between two hosts')
    .description(
      'Measures round trips, or with --bandwidth throughput, to a host where `node-rdma perf --listen` runs.',
    )
    .argument(
      '[host]',
      'the other host; with --listen the address to listen on (default: every IPv4 address)',
    )
    .option('-l, --listen', 'take part in what others measure')
    .option('-p, --port <port>', 'port', wholeNumber({ minimum: 1, maximum: 65535 }), defaultPort)
    .option('-b, --bandwidth', 'measure throughput instead of round trips')
    .addOption(
      new Option('-o, --operation <what>', 'Send, RDMA Write (with --bandwidth) or RDMA Read')
        .choices(operations)
        .default('send'),
    )
    .option(
      '-s, --size <bytes>',
      `of each, as in 4096, 4k, 1M (default: 64, with --bandwidth 64k)`,
      bytes(sizeLimits),
    )
    .option('-d, --depth <n>', 'with --bandwidth: on their way at once', wholeNumber(depthLimits), 32)
    .addOption(
      new Option('-t, --duration <seconds>', 'measure so long')
        .argParser(seconds({ minimum: 0.1, maximum: 86_400 }))
        .default(5000, '5'),
    )
    .option('--peer-to-peer', 'connect with peerToPeer')
    .option('--histogram', 'draw how long the round trips took')
    .option('--json', 'one JSON object a line')
    .addHelpText(
      'after',
      `
Examples:
  node-rdma perf --listen                                on one host
  node-rdma perf 10.0.0.1 --histogram                    round trips of 64 bytes, from another
  node-rdma perf 10.0.0.1 --bandwidth -o write -s 1M     throughput of RDMA Write

Exit status: 0 measured, 1 failed, 2 wrong usage.`,
    )
    .action(async (host: string | undefined, flags: Flags, command: Command) => {
      const output = new Output(flags.json ?? false);
      const { port, operation, depth, duration } = flags;
      if (flags.listen) return listenForPerf({ host, port }, output, onInterrupt());
      if (host === undefined) return command.error('error: a host is missing, or --listen');
      const what = flags.bandwidth ? 'bandwidth' : 'latency';
      if (operation === 'write' && what === 'latency')
        return command.error('error: a Write tells nobody when it is in place: it has a --bandwidth only');
      const options = {
        ...({
          host,
          port,
          operation,
          depth,
          duration,
          measure: what,
          size: flags.size ?? sizes[what],
        } as const),
        peerToPeer: flags.peerToPeer ?? false,
        histogram: flags.histogram ?? false,
      };
      await measure(options, output, onInterrupt());
    });
}
