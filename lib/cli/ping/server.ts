import { type Connection, createServer, type ServerPeerToPeer } from '../../index.js';
import { errorLine, errorRecord, type Output } from '../output.js';
import { answerPings, queues } from './protocol.js';

export interface ListenPingOptions {
  /** Undefined: every IPv4 address of every device. */
  readonly host: string | undefined;
  readonly port: number;
  readonly peerToPeer: ServerPeerToPeer;
  /** Ends behind the first client, with its failure if it fails. */
  readonly once: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

/**
 * Answers whoever speaks rping's protocol, until it is interrupted.
 *
 * @returns whether the one client, if it was to be one, was answered to its end
 */
export async function listenForPings(
  options: ListenPingOptions,
  output: Output,
  interrupted: AbortSignal,
): Promise<boolean> {
  const { host, port, once, peerToPeer } = options;
  const server = createServer({ ...queues, peerToPeer });
  let success = true;
  const done = new Promise<void>((resolve) => {
    interrupted.addEventListener('abort', () => resolve());
    const fail = (error: unknown, from: string) => {
      output.person(`${from}: ${errorLine(error)}`);
      output.machine({ type: 'failure', from, ...errorRecord(error) });
      if (!once) return;
      success = false;
      resolve();
    };
    server.on('clientError', (error, connection) => fail(error, addressOf(connection)));
    server.on('connection', (connection) => {
      const from = addressOf(connection);
      serve(connection, options, output).then(
        () => once && resolve(),
        (error: unknown) => fail(error, from),
      );
    });
  });
  await server.listen({ port, ...(host !== undefined && { host }) });
  const address = server.address();
  output.person(`listening on ${address?.address} port ${address?.port}`);
  output.machine({ type: 'listening', ...address });
  if (!interrupted.aborted) await done;
  await server.close();
  return success;
}

function addressOf({ remoteAddress }: Connection): string {
  return remoteAddress ?? 'a client';
}

async function serve(connection: Connection, { quiet, verbose }: ListenPingOptions, output: Output) {
  const from = addressOf(connection);
  const { requested, negotiated, rtr } = connection.peerToPeer;
  const handshake = requested ? `; peer-to-peer: ${negotiated ? 'negotiated' : 'declined'}, rtr ${rtr}` : '';
  if (!quiet) output.person(`${from} has connected${handshake}`);
  const count = await answerPings(connection, (text) => {
    if (verbose) output.person(`ping data: ${text}`);
  });
  await connection.close();
  if (!quiet) output.person(`${from} has left: ${count} pings answered`);
  output.machine({ type: 'served', from, pings: count, peerToPeer: connection.peerToPeer });
}
