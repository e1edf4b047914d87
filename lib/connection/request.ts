import { inspect } from 'node:util';
import { invalidArgumentType, RdmaError } from '../errors.js';
import type { IncomingRequest } from './acceptance.js';
import { reject } from './acceptance.js';
import type { Connection } from './connection.js';
import { type ConnectionOptions, requireConnectionOptions } from './options.js';

/** What a server does with requests. */
export interface RequestServer {
  acceptRequest(request: IncomingRequest, options: ConnectionOptions): Connection;
  requestAnswered(request: ConnectionRequest): void;
}

/**
 * A client's request for a connection, of a server's `'request'` event: accept or reject it. Until then the client
 * waits, for 10 seconds on siw.
 */
export class ConnectionRequest {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /**
   * The client's private data. RoCE and InfiniBand pad it with zeros, to 56 bytes, unless the client negotiates
   * (`peerToPeer` or `flowControl`).
   */
  readonly privateData: Buffer;
  /** Whether the client asks for a peer-to-peer connection. */
  readonly peerToPeer: boolean;
  readonly #server: RequestServer;
  readonly #request: IncomingRequest;
  #answered = false;

  /** @internal */
  constructor(server: RequestServer, request: IncomingRequest) {
    const { remoteAddress, remotePort, localAddress, localPort } = request.id.info;
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
    this.localAddress = localAddress;
    this.localPort = localPort;
    this.privateData = request.privateData;
    this.peerToPeer = request.offer?.peerToPeer ?? false;
    this.#server = server;
    this.#request = request;
  }

  /**
   * Accepts with the server's options, changed by these: `rdma_accept(3)`. The connection can be written to at once.
   *
   * @throws `ERR_RDMA_REQUEST_ANSWERED` the second time, and for invalid options
   */
  accept(options: ConnectionOptions = {}): Connection {
    requireConnectionOptions(options);
    this.#requireOpen();
    const connection = this.#server.acceptRequest(this.#request, options);
    this.#answer();
    return connection;
  }

  /**
   * Rejects: `rdma_reject(3)`. The client fails with `ERR_RDMA_REJECTED` and these bytes as `privateData`; up to 231
   * bytes always fit on iWARP, 128 on RoCE and InfiniBand.
   *
   * @throws `ERR_RDMA_REQUEST_ANSWERED` the second time
   */
  reject(privateData: Uint8Array = new Uint8Array(0)): void {
    if (!(privateData instanceof Uint8Array)) {
      throw invalidArgumentType('privateData', 'a Uint8Array', privateData);
    }
    this.#requireOpen();
    reject(this.#request, privateData);
    this.#answer();
    void this.#request.id.close();
  }

  /** @internal The server closes: nobody will answer. */
  abandon(): Promise<void> {
    this.#answer();
    return this.#request.id.close();
  }

  [inspect.custom](_depth: number, options: object): string {
    const { remoteAddress, remotePort, peerToPeer, privateData } = this;
    return `ConnectionRequest ${inspect({ remoteAddress, remotePort, peerToPeer, privateData }, options)}`;
  }

  #answer(): void {
    this.#answered = true;
    this.#server.requestAnswered(this);
  }

  #requireOpen(): void {
    if (this.#answered) throw new RdmaError('ERR_RDMA_REQUEST_ANSWERED', 'The request was answered already');
  }
}
