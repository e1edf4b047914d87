import {
  type Connection,
  type ConnectOptions,
  connect,
  createServer,
  type Server,
  type ServerOptions,
} from 'node-rdma';
import { onTestFinished } from 'vitest';
import type { GuestDevice } from './devices.js';

/** Both ends of a connection of this process to itself. */
export interface Pair {
  readonly client: Connection;
  readonly accepted: Connection;
  readonly server: Server;
  readonly port: number;
}

/** A server that listens on a device, and is closed behind the test with all its connections. */
export async function listen(
  device: GuestDevice,
  options: ServerOptions = {},
): Promise<{ server: Server; port: number }> {
  // A test that ends in the middle of a connection is no error of its other end's.
  const server = createServer(options, (connection) => connection.on('error', () => {}));
  onTestFinished(() => server.close());
  await server.listen({ host: device.address });
  return { server, port: server.address()!.port };
}

/** A client that is destroyed behind the test. */
export function dial(device: GuestDevice, port: number, options: Partial<ConnectOptions> = {}): Connection {
  const client = connect({ host: device.address, port, ...options });
  onTestFinished(() => void client.destroy());
  return client;
}

/** The next connection that a server has. */
export function nextConnection(server: Server): Promise<Connection> {
  return new Promise((resolve) => server.once('connection', resolve));
}

/** Two ends that know of one another; sends need not flow yet. */
export async function openPair(
  device: GuestDevice,
  client: Partial<ConnectOptions> = {},
  server: ServerOptions = {},
): Promise<Pair> {
  const listening = await listen(device, server);
  const connection = nextConnection(listening.server);
  const dialled = dial(device, listening.port, client);
  const [accepted] = await Promise.all([connection, dialled.established]);
  onTestFinished(() => void accepted.destroy());
  return { client: dialled, accepted, ...listening };
}

/** Takes what a promise rejects with; fails if it does not. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('the promise was resolved');
}

/** The next time that something is emitted, and with what. */
export function once(
  emitter: { once(name: string, listener: (...args: unknown[]) => void): unknown },
  name: string,
): Promise<unknown[]> {
  return new Promise((resolve) => emitter.once(name, (...args) => resolve(args)));
}

/** `count` messages of a connection. */
export async function take(connection: Connection, count: number): Promise<string[]> {
  const messages: string[] = [];
  while (messages.length < count) {
    const message = await connection.receive();
    if (message === null) break;
    messages.push(message.toString());
  }
  return messages;
}
