import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, connect, type PeerToPeerOptions } from '../../index.js';
import { histogram } from '../histogram.js';
import { errorLine, errorRecord, type Output } from '../output.js';
import { RoundTrips } from '../round-trips.js';
import { Pinger, queues } from './protocol.js';

export interface PingOptions {
  readonly host: string;
  readonly port: number;
  readonly family: 0 | 4 | 6;
  /** Infinity: until it is interrupted. */
  readonly count: number;
  /** Bytes of text. */
  readonly size: number;
  /** Milliseconds from one ping to the next. */
  readonly interval: number;
  /** Milliseconds: for establishing, and for each answer. */
  readonly timeout: number;
  readonly peerToPeer: false | PeerToPeerOptions;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly histogram: boolean;
}

interface Progress {
  sent: number;
  /** `performance.now()` */
  readonly start: number;
  readonly times: RoundTrips;
}

/**
 * Pings a server that speaks rping's protocol, and tells as ping(8) does.
 *
 * @param interrupted ends it before its count, with the statistics
 * @returns whether every ping came back
 */
export async function pingHost(
  options: PingOptions,
  output: Output,
  interrupted: AbortSignal,
): Promise<boolean> {
  const { host, port, family, size, timeout, peerToPeer } = options;
  const connection = connect({ host, port, family, timeout, peerToPeer, ...queues, signal: interrupted });
  const progress: Progress = { sent: 0, start: performance.now(), times: new RoundTrips() };
  let failure: unknown;
  try {
    const pinger = await Pinger.open(connection, size);
    tellStart(options, connection, progress.start, output);
    await sendPings(pinger, options, progress, output, interrupted);
    await connection.close();
  } catch (error) {
    // Its own text says no more than that somebody has pressed a key.
    if (!interrupted.aborted) failure = error;
    connection.destroy();
  }
  // What ended the connection is told already.
  await connection.closed.catch(() => {});
  if (failure !== undefined && progress.sent === 0) throw failure;
  if (failure !== undefined) {
    output.person(`ping ${progress.sent - 1}: ${errorLine(failure)}`);
    output.machine({ type: 'failure', sequence: progress.sent - 1, ...errorRecord(failure) });
  }
  tellStatistics(options, progress, output);
  return failure === undefined && progress.times.count > 0;
}

async function sendPings(
  pinger: Pinger,
  { count, interval, timeout, quiet, verbose, host, size }: PingOptions,
  progress: Progress,
  output: Output,
  interrupted: AbortSignal,
): Promise<void> {
  while (progress.sent < count && !interrupted.aborted) {
    const sequence = progress.sent++;
    const start = performance.now();
    const text = await pinger.ping(sequence, timeout);
    const time = performance.now() - start;
    progress.times.add(time);
    if (!quiet) output.person(`${size} bytes from ${host}: seq=${sequence} time=${time.toFixed(3)} ms`);
    if (verbose) output.person(`ping data: ${text}`);
    if (!quiet) output.machine({ type: 'reply', sequence, time, ...(verbose && { text }) });
    const rest = interval - (performance.now() - start);
    if (rest > 0 && progress.sent < count) await delay(rest, undefined, { signal: interrupted });
  }
}

function tellStart(
  { host, port, size }: PingOptions,
  connection: Connection,
  start: number,
  output: Output,
): void {
  const { remoteAddress, localAddress, peerToPeer } = connection;
  const connecting = performance.now() - start;
  const { requested, negotiated, rtr } = peerToPeer;
  output.person(
    `PING ${host} (${remoteAddress}) port ${port} from ${localAddress}: ${size} bytes of text; ` +
      `connected in ${connecting.toFixed(1)} ms`,
  );
  if (requested) output.person(`peer-to-peer: ${negotiated ? 'negotiated' : 'not negotiated'}, rtr ${rtr}`);
  output.machine({ type: 'connected', host, port, remoteAddress, localAddress, connecting, peerToPeer });
}

function tellStatistics(options: PingOptions, { sent, start, times }: Progress, output: Output): void {
  const time = performance.now() - start;
  const lost = sent === 0 ? 0 : ((sent - times.count) / sent) * 100;
  output.person(`--- ${options.host} ping statistics ---`);
  output.person(
    `${sent} transmitted, ${times.count} received, ${Number(lost.toFixed(1))}% loss, time ${time.toFixed(0)} ms`,
  );
  if (times.count > 0) {
    const { minimum, average, maximum, deviation } = times;
    const shown = [minimum, average, maximum, deviation].map((value) => value.toFixed(3)).join('/');
    output.person(`rtt min/avg/max/mdev = ${shown} ms`);
    if (options.histogram) output.person(histogram(times.sorted));
  }
  output.machine({ type: 'statistics', transmitted: sent, received: times.count, time, rtt: times });
}
