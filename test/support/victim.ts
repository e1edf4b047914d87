/** A process with one side of connections, for tests that kill or stop it: see victim-process.ts. */
import { type Connection, connect, createServer } from 'node-rdma';
import type { Part, Report } from './victim-process.js';

function report(message: Report): void {
  process.send?.(message);
}

/** Sends back what it receives, until the connection ends, for whatever reason. */
async function echo(connection: Connection): Promise<void> {
  try {
    for await (const message of connection) await connection.send(message);
  } catch {
    // The test is about the other side, which tells how it ended.
  }
}

async function play(part: Part): Promise<void> {
  if (part.role === 'client') {
    const { host, port, options } = part;
    const connection = connect({ host, port, ...options });
    connection.on('error', () => {});
    if (part.speaks) connection.send(Buffer.from('ball')).catch(() => {});
    await echo(connection);
    return;
  }
  const server = createServer(part.options, echo);
  if (!part.answers) server.on('request', () => report({ type: 'request' }));
  server.on('connection', (connection) => connection.on('error', () => {}));
  await server.listen({ host: part.host });
  report({ type: 'listening', port: server.address()!.port });
}

process.once('message', (part: Part) => {
  play(part).catch((error: Error) => report({ type: 'failed', message: String(error.stack) }));
});

// The test is gone, or done with this process.
process.on('disconnect', () => process.exit());
