/** The process with the other side of a watched connection: see messages.ts. */
import { type Connection, connect, createServer, RemoteMemory } from 'node-rdma';
import { useBinding } from '#lib/binding/addon.js';
import type { Order, Part, Told } from './messages.js';

let current: Connection | undefined;

function tell(told: Told): void {
  process.send?.(told);
}

async function serve(connection: Connection, behaviour: Part['behaviour']): Promise<void> {
  current = connection;
  connection.on('error', () => {});
  try {
    if (behaviour === 'hold') {
      for await (const { data } of connection.leases()) data.at(0);
    } else {
      for await (const message of connection) await connection.send(message);
    }
  } catch {
    // The watched side tells how it ended.
  }
}

async function play(part: Part): Promise<void> {
  const { role, host, port, options, behaviour, speaks } = part;
  if (role === 'client') {
    const connection = connect({ ...options, host, port });
    if (speaks) connection.send(Buffer.from('first')).catch(() => {});
    await serve(connection, behaviour);
    return;
  }
  const { receiveDepth, maxMessageSize } = options;
  const server = createServer(
    { receiveDepth, maxMessageSize },
    (connection) => void serve(connection, behaviour),
  );
  if (behaviour === 'silent') server.on('request', () => tell({ type: 'request' }));
  await server.listen({ host, port: 0, ...(behaviour === 'silent' ? { backlog: 1 } : {}) });
  tell({ type: 'listening', port: server.address()!.port });
}

process.on('message', (order: Order) => {
  if (order.type === 'play') {
    play(order).catch((error: Error) => tell({ type: 'failed', message: String(error.stack) }));
  } else if (order.type === 'violate') {
    current!.write(new RemoteMemory(0x1000n, 0x77, 8), Buffer.alloc(8)).catch(() => {});
  }
});
process.on('disconnect', () => process.exit());
useBinding();
tell({ type: 'loaded' });
