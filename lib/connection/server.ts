import { AsyncResource } from 'node:async_hooks';
import { lookup } from 'node:dns/promises';
import { EventEmitter } from 'node:events';
import { isIP } from 'node:net';
import { inspect } from 'node:util';
import { type CmEvent, CmId } from '../cm/index.js';
import { closedError, invalidArgumentType, RdmaError } from '../errors.js';
import { decodePrivateData } from '../peer-to-peer/header.js';
import { accept, type IncomingRequest, reject } from './acceptance.js';
import { Connection } from './connection.js';
import { bindError } from './connection-error.js';
import {
  type ConnectionOptions,
  type ListenOptions,
  normalizeConnectionOptions,
  normalizeListenOptions,
  normalizeServerOptions,
  type ServerOptions,
  type ServerSettings,
} from './options.js';
import { ConnectionRequest, type RequestServer } from './request.js';
import { ChannelShare } from './shared-channel.js';

/** Events of a `Server`. */
export interface ServerEvents {
  listening: [];
  /** With a listener for it, the program answers all requests; without, they are accepted. */
  request: [request: ConnectionRequest];
  /** A connection is established. */
  connection: [connection: Connection];
  /** A connection failed before it was established: its client is gone, or took no part in what was agreed. */
  clientError: [error: Error, connection: Connection];
  /** A request was rejected because of `maxConnections`. */
  drop: [address: { remoteAddress: string; remotePort: number }];
  close: [];
}

/** The address that a server listens on. */
export interface ServerAddress {
  address: string;
  family: 'IPv4' | 'IPv6';
  port: number;
}

/**
 * Makes a server; `onConnection` is a listener of `'connection'`. It accepts after `listen()`.
 *
 * ```js
 * const server = createServer(async (connection) => {
 *   try {
 *     for await (const message of connection) await connection.send(message);
 *   } catch (error) {
 *     console.error(`${connection.remoteAddress}: ${error.message}`);
 *   }
 * });
 * await server.listen({ port: 7471 });
 * ```
 *
 * @throws for invalid options
 */
export function createServer(onConnection?: (connection: Connection) => void): Server;
export function createServer(
  options: ServerOptions | undefined,
  onConnection?: (connection: Connection) => void,
): Server;
export function createServer(
  options?: ServerOptions | ((connection: Connection) => void),
  onConnection?: (connection: Connection) => void,
): Server {
  if (typeof options === 'function') return createServer({}, options);
  if (onConnection !== undefined && typeof onConnection !== 'function') {
    throw invalidArgumentType('onConnection', 'a function', onConnection);
  }
  const server = new Server(normalizeServerOptions(options));
  if (onConnection !== undefined) server.on('connection', onConnection);
  return server;
}

/** Listens for connections: `rdma_listen(3)`. Made by {@link createServer}. */
export class Server extends EventEmitter<ServerEvents> implements RequestServer {
  readonly #settings: ServerSettings;
  readonly #resource = new AsyncResource('RdmaServer');
  readonly #connections = new Set<Connection>();
  readonly #requests = new Set<ConnectionRequest>();
  #listener: { id: CmId; share: ChannelShare } | undefined;
  #state: 'new' | 'starting' | 'listening' | 'closed' = 'new';
  #referenced = true;
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(settings: ServerSettings) {
    super();
    this.#settings = settings;
  }

  /**
   * Listens; resolves when clients can connect. Rejects with `EADDRINUSE`, `EADDRNOTAVAIL`, `ENODEV` (the address
   * belongs to no RDMA device), `ERR_RDMA_SERVER_ALREADY_LISTEN`.
   */
  async listen(options?: ListenOptions): Promise<void> {
    const { host, port, backlog } = normalizeListenOptions(options);
    if (this.#state === 'closed') throw closedError('server');
    if (this.#state !== 'new') {
      throw new RdmaError('ERR_RDMA_SERVER_ALREADY_LISTEN', 'The server listens already');
    }
    this.#state = 'starting';
    try {
      const address = isIP(host) === 0 ? (await lookup(host)).address : host;
      // It may have been closed meanwhile.
      if (this.#closed !== undefined) throw closedError('server');
      this.#listen(address, port, backlog);
    } catch (error) {
      if (this.#closed === undefined) this.#state = 'new';
      throw error;
    }
    this.#emit('listening');
  }

  /** Whether clients can connect. */
  get listening(): boolean {
    return this.#state === 'listening';
  }

  /** Connections that are open, those included that are not established yet. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Where the server listens; null unless it does. */
  address(): ServerAddress | null {
    if (this.#listener === undefined) return null;
    const { localAddress, localPort } = this.#listener.id.info;
    return { address: localAddress, family: isIP(localAddress) === 6 ? 'IPv6' : 'IPv4', port: localPort };
  }

  /**
   * Stops listening, rejects the requests that were not answered, and closes the connections that were accepted, each
   * in order and within 5 seconds. Resolves when all of it is done. Can be called at any time, any number of times.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The server keeps the process alive (the default). */
  ref(): this {
    this.#referenced = true;
    this.#listener?.share.ref();
    return this;
  }

  /** The server does not keep the process alive. */
  unref(): this {
    this.#referenced = false;
    this.#listener?.share.unref();
    return this;
  }

  [inspect.custom](_depth: number, options: object): string {
    const { listening, connections } = this;
    return `Server ${inspect({ listening, address: this.address(), connections }, options)}`;
  }

  /** @internal */
  acceptRequest(request: IncomingRequest, options: ConnectionOptions): Connection {
    const { flowControl, peerToPeer } = this.#settings;
    const settings = normalizeConnectionOptions(options, flowControl, this.#settings);
    const connection = this.#resource.runInAsyncScope(() => new Connection(settings, new ChannelShare()));
    const { link } = connection;
    link.peerData = request.privateData;
    this.#connections.add(connection);
    link.onEstablished = () => this.#emit('connection', connection);
    link.onClosed = (error, established) => {
      this.#connections.delete(connection);
      if (established || error === undefined) return;
      // The server's program knows nothing of the connection yet, unless it answered the request itself.
      link.lifecycle.errorCarried();
      this.#emit('clientError', error, connection);
    };
    accept(link, request, settings, peerToPeer).catch((error: Error) => link.end(error));
    return connection;
  }

  /** @internal */
  requestAnswered(request: ConnectionRequest): void {
    this.#requests.delete(request);
  }

  #listen(address: string, port: number, backlog: number): void {
    const share = new ChannelShare();
    const id = new CmId(share.channel);
    try {
      id.bind({ address, port });
      id.on('connect-request', (event, requested) => this.#request(event, requested));
      id.listen(backlog);
    } catch (error) {
      void id.close().finally(() => share.release());
      throw bindError(error, { address, port });
    }
    if (!this.#referenced) share.unref();
    this.#listener = { id, share };
    this.#state = 'listening';
  }

  #request(event: CmEvent, id: CmId): void {
    const { header: offer, user } = decodePrivateData(event.privateData);
    const incoming: IncomingRequest = { id, event, offer, privateData: Buffer.from(user) };
    if (this.#state === 'closed') {
      void id.close();
      return;
    }
    if (this.#connections.size >= this.#settings.maxConnections) {
      const { remoteAddress, remotePort } = id.info;
      reject(incoming, new Uint8Array(0));
      void id.close();
      this.#emit('drop', { remoteAddress, remotePort });
      return;
    }
    if (this.listenerCount('request') === 0) {
      this.acceptRequest(incoming, {});
      return;
    }
    const request = new ConnectionRequest(this, incoming);
    this.#requests.add(request);
    this.#emit('request', request);
  }

  async #close(): Promise<void> {
    this.#state = 'closed';
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.id.close();
    await Promise.all([...this.#requests].map((request) => request.abandon()));
    await Promise.all([...this.#connections].map((connection) => connection.close()));
    listener?.share.release();
    this.#emit('close');
  }

  #emit<K extends keyof ServerEvents>(name: K, ...args: ServerEvents[K]): void {
    const emit = this.emit as (name: K, ...args: ServerEvents[K]) => boolean;
    try {
      this.#resource.runInAsyncScope(emit, this, name, ...args);
    } catch (error) {
      // A listener that throws must not keep the rest from its work.
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
