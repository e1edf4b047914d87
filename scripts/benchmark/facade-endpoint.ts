import { type Connection, type ConnectionOptions, connect, createServer } from 'node-rdma';

/** Serves the one connection that comes, to its end. */
export async function serveOne(
  address: string,
  options: ConnectionOptions,
  listening: (port: number) => void,
  serve: (connection: Connection) => Promise<void>,
): Promise<void> {
  let served: Promise<void> | undefined;
  const server = createServer(options, (connection) => {
    served = serve(connection).then(() => connection.close());
  });
  await server.listen({ host: address, port: 0 });
  listening(server.address()!.port);
  await new Promise((resolve) => server.once('connection', resolve));
  await served;
  await server.close();
}

/** A connection with flow control, as `peerToPeer` brings it. */
export async function openOne(
  address: string,
  port: number,
  options: ConnectionOptions,
): Promise<Connection> {
  const connection = connect({ host: address, port, flowControl: true, ...options });
  await connection.ready;
  return connection;
}
