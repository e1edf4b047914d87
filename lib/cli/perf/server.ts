import { type Connection, type ConnectionRequest, createServer } from '../../index.js';
import { errorLine, errorRecord, type Output } from '../output.js';
import { connectionOptions, decodeRequest, type PerfRequest } from './request.js';

export interface ListenPerfOptions {
  readonly host: string | undefined;
  readonly port: number;
}

/** Takes part in what clients measure, until it is interrupted. */
export async function listenForPerf(
  { host, port }: ListenPerfOptions,
  output: Output,
  interrupted: AbortSignal,
): Promise<void> {
  const server = createServer();
  server.on('request', (request) => answer(request, output));
  server.on('clientError', (error, connection) => tellFailure(error, connection, output));
  await server.listen({ port, ...(host !== undefined && { host }) });
  const address = server.address();
  output.person(`listening on ${address?.address} port ${address?.port}`);
  output.machine({ type: 'listening', ...address });
  if (!interrupted.aborted)
    await new Promise((resolve) => interrupted.addEventListener('abort', resolve, { once: true }));
  await server.close();
}

function answer(request: ConnectionRequest, output: Output): void {
  const asked = decodeRequest(request.privateData);
  if (asked === null) {
    request.reject(Buffer.from('node-rdma perf'));
    return;
  }
  const connection = request.accept(connectionOptions(asked));
  serve(connection, asked).then(
    () => {
      const from = connection.remoteAddress;
      output.person(`${from}: ${asked.operation} of ${asked.size} bytes, measured`);
      output.machine({ type: 'served', from, ...asked });
    },
    (error: unknown) => tellFailure(error, connection, output),
  );
}

function tellFailure(error: unknown, { remoteAddress: from }: Connection, output: Output): void {
  output.person(`${from}: ${errorLine(error)}`);
  output.machine({ type: 'failure', from, ...errorRecord(error) });
}

async function serve(connection: Connection, { operation, echo, size }: PerfRequest): Promise<void> {
  await connection.established;
  const region = await connection.allocate(size, {
    access: operation === 'write' ? ['remote-write'] : operation === 'read' ? ['remote-read'] : [],
  });
  // The client's empty message asks for the memory, and after the measurement for an answer to all that went before.
  const first = await connection.receive();
  if (first === null) return;
  await connection.send(operation === 'send' ? new Uint8Array(0) : region.remote().toBytes());
  for await (const message of connection)
    if (echo || message.length === 0) await connection.send(message.length === 0 ? message : region.bytes);
}
