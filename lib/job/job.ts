import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { isIP } from 'node:net';
import { inspect } from 'node:util';
import { requireWaitOptions, type WaitOptions } from '../connection/cancellation.js';
import type { Connection } from '../connection/connection.js';
import type { ConnectionOptions } from '../connection/options.js';
import type { ConnectionRequest } from '../connection/request.js';
import { createServer, type Server } from '../connection/server.js';
import {
  closedError,
  invalidArgumentType,
  invalidArgumentValue,
  RdmaError,
  requireInteger,
  requireOptions,
} from '../errors.js';
import { RankError, RanksUnreachableError } from './errors.js';
import { decodeIntroduction, tokenLength } from './introduction.js';
import type { KeyValueSpace } from './key-value-space.js';
import { forEachLimited, initiates } from './mesh.js';
import { Peer, type PeerHost } from './peer.js';
import { decodeCard, encodeCard, localAddresses, type RankAddress, type RankCard } from './rank-address.js';

export interface JobEvents {
  /** There is a connection to a rank, whoever asked for it; sends flow. */
  connection: [connection: Connection, rank: number];
  /**
   * The connection to a rank has ended with an error; a rank that leaves in order does not count. Without a listener
   * for it, or for `'error'` of the connection, such an end is an uncaught exception, which ends the job.
   */
  lost: [error: RankError];
}

export interface JobListenOptions {
  /**
   * Numeric addresses of this host to listen on. Default: every address that belongs to an RDMA device, but none that
   * is link-local.
   */
  addresses?: readonly string[] | undefined;
}

export interface ConnectAllOptions extends WaitOptions {
  /** How many ranks this one asks at once, 1 to 1024; default 16. */
  parallel?: number | undefined;
}

/** Milliseconds. */
const defaultTimeout = 30_000;
const defaultMeshTimeout = 60_000;

const cardKey = 'node-rdma.card';
const reserved = /^(pmix|node-rdma)\./;

/**
 * This process as a rank of a job: made by {@link joinJob}. Ranks find one another through the launcher, and connect to
 * one another with `peerToPeer`: whoever has something to say says it first.
 */
export class Job extends EventEmitter<JobEvents> {
  readonly namespace: string;
  /** 0 to `size - 1`. */
  readonly rank: number;
  /** How many ranks the job has. */
  readonly size: number;
  /** Rank among the ranks of the same node. */
  readonly localRank: number;
  readonly #space: KeyValueSpace;
  readonly #options: ConnectionOptions;
  readonly #peers = new Map<number, Peer>();
  readonly #cards = new Map<number, Promise<RankCard>>();
  readonly #servers: Server[] = [];
  readonly #token = randomBytes(tokenLength);
  #listening: Promise<readonly RankAddress[]> | undefined;
  #finalized: Promise<void> | undefined;

  /** @internal */
  constructor(space: KeyValueSpace, options: ConnectionOptions) {
    super();
    this.#space = space;
    this.#options = options;
    const { namespace, rank, size, localRank } = space;
    this.namespace = namespace;
    this.rank = rank;
    this.size = size;
    this.localRank = localRank;
  }

  /** Publishes a value under a key of 1 to 511 bytes: `PMIx_Put(3)` and `PMIx_Commit(3)`. */
  async put(key: string, value: string | Uint8Array): Promise<void> {
    requireKey(key);
    if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
      throw invalidArgumentType('value', 'a string or a Uint8Array', value);
    }
    this.#requireOpen();
    await this.#space.put(key, typeof value === 'string' ? Buffer.from(value) : value);
  }

  /**
   * What a rank has published under a key; waits for it, 30 seconds by default: `PMIx_Get(3)`. Rejects with a
   * {@link RankError}, `ETIMEDOUT` for example.
   */
  async get(rank: number, key: string, options: WaitOptions = {}): Promise<Buffer> {
    this.#requireRank(rank);
    requireKey(key);
    requireWaitOptions(options);
    this.#requireOpen();
    return await this.#get(rank, key, options);
  }

  /** Resolves when every rank of the job has called it: `PMIx_Fence(3)`. Without a time-out it waits for ever. */
  async fence(options: WaitOptions = {}): Promise<void> {
    requireWaitOptions(options);
    this.#requireOpen();
    await this.#space.fence(options);
  }

  /** Ends the whole job, this rank included, with an exit status of 1 to 255: `PMIx_Abort(3)`. */
  abort(status = 1, message = ''): void {
    requireInteger('status', status, 1, 255);
    if (typeof message !== 'string') throw invalidArgumentType('message', 'a string', message);
    this.#requireOpen();
    this.#space.abort(status, message);
  }

  /** The name of the node that each rank is on. */
  async nodeNames(): Promise<string[]> {
    this.#requireOpen();
    const names: string[] = [];
    await forEachLimited([...Array(this.size).keys()], 16, async (rank) => {
      names[rank] = await this.#space.nodeName(rank);
    });
    return names;
  }

  /**
   * Lets the other ranks connect to this one: listens on its addresses, and publishes them. Resolves with them.
   * Rejects with `ENODEV` if there is none that belongs to an RDMA device.
   */
  listen(options: JobListenOptions = {}): Promise<readonly RankAddress[]> {
    this.#listening ??= this.#listen(options).catch((error) => {
      this.#listening = undefined;
      throw error;
    });
    return this.#listening;
  }

  /**
   * The connection to a rank: the one that there is, or a new one, in at most 30 seconds by default. There is one for
   * a pair, also when both ask at once. Sends flow when it resolves.
   *
   * Rejects with a {@link RankError}, which has the code of what went wrong.
   */
  async connect(rank: number, options: WaitOptions = {}): Promise<Connection> {
    this.#requireRank(rank);
    if (rank === this.rank) throw invalidArgumentValue('rank', rank, 'must be another rank');
    requireWaitOptions(options);
    this.#requireOpen();
    return await this.#peer(rank).connect({
      timeout: options.timeout ?? defaultTimeout,
      signal: options.signal,
    });
  }

  /**
   * Connects to all other ranks, in at most 60 seconds by default. All ranks are to call it: each asks one half of
   * the others, and waits for the other half; those that have not come after half of the time it asks itself.
   *
   * Rejects with a {@link RanksUnreachableError} that names every rank that could not be reached, once it is known of
   * each. Large jobs do better with {@link connect} on demand: a mesh of N ranks has N (N - 1) / 2 connections.
   */
  async connectAll(options: ConnectAllOptions = {}): Promise<ReadonlyMap<number, Connection>> {
    requireWaitOptions(options);
    const parallel = requireInteger('options.parallel', options.parallel ?? 16, 1, 1024);
    this.#requireOpen();
    const { signal } = options;
    const deadline = performance.now() + (options.timeout ?? defaultMeshTimeout);
    const left = (share = 1) => Math.max(1, Math.ceil((deadline - performance.now()) * share));
    const others = [...Array(this.size).keys()].filter((rank) => rank !== this.rank);
    const asked = others
      .filter((rank) => initiates(this.rank, rank, this.size))
      // Not everybody at once at the door of the same rank.
      .sort((a, b) => ((a - this.rank + this.size) % this.size) - ((b - this.rank + this.size) % this.size));
    const errors: RankError[] = [];
    const attempt = async (connecting: Promise<Connection>) => {
      try {
        await connecting;
      } catch (error) {
        if (!(error instanceof RankError)) throw error;
        errors.push(error);
      }
    };
    const expected = others.filter((rank) => !asked.includes(rank));
    await Promise.all([
      forEachLimited(asked, parallel, (rank) =>
        attempt(this.#peer(rank).connect({ timeout: left(), signal })),
      ),
      ...expected.map(async (rank) => {
        const peer = this.#peer(rank);
        await peer.expect({ timeout: left(0.5), signal }).catch(() => {});
        await attempt(peer.connect({ timeout: left(), signal }));
      }),
    ]);
    if (errors.length > 0) throw new RanksUnreachableError(errors, others.length);
    return this.connections;
  }

  /** The connections that there are, by rank. */
  get connections(): ReadonlyMap<number, Connection> {
    const all = [...this.#peers.values()].sort((a, b) => a.rank - b.rank);
    return new Map(
      all.flatMap(({ rank, connection }) => (connection === undefined ? [] : [[rank, connection]])),
    );
  }

  /**
   * Leaves the job: closes its connections in order, and tells the launcher: `PMIx_Finalize(3)`. A process that ends
   * without does the last by itself, or aborts the job if its exit status is not 0.
   */
  finalize(): Promise<void> {
    this.#finalized ??= this.#finalize();
    return this.#finalized;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.finalize();
  }

  [inspect.custom](_depth: number, options: object): string {
    const { namespace, rank, size, localRank } = this;
    const connected = [...this.connections.keys()];
    return `Job ${inspect({ namespace, rank, size, localRank, connected }, options)}`;
  }

  /** @internal Whether it is left to the launcher, by {@link finalize}. */
  get left(): boolean {
    return this.#finalized !== undefined;
  }

  async #get(rank: number, key: string, options: WaitOptions): Promise<Buffer> {
    try {
      const bytes = await this.#space.get(rank, key, {
        ...options,
        timeout: options.timeout ?? defaultTimeout,
      });
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    } catch (error) {
      throw error instanceof RdmaError ? RankError.from(rank, error) : error;
    }
  }

  async #listen(options: JobListenOptions): Promise<readonly RankAddress[]> {
    requireOptions('options', options);
    const { addresses } = options;
    if (addresses !== undefined) requireAddresses(addresses);
    this.#requireOpen();
    const own: RankAddress[] = [];
    for (const address of addresses ?? localAddresses()) {
      const port = await this.#listenAt(address, addresses !== undefined);
      if (port !== null) own.push({ address, port });
    }
    if (own.length === 0) {
      throw new RdmaError('ENODEV', 'No address of this host belongs to an RDMA device: see `rdma link`');
    }
    await this.#space.put(cardKey, encodeCard({ token: this.#token.toString('hex'), addresses: own }));
    return own;
  }

  /** The port, or null for an address without an RDMA device that was not asked for. */
  async #listenAt(address: string, asked: boolean): Promise<number | null> {
    const server = createServer({ ...this.#options, peerToPeer: 'require' });
    server.on('request', (request) => this.#request(request));
    try {
      await server.listen({ host: address, port: 0, backlog: Math.max(128, this.size) });
    } catch (error) {
      await server.close();
      const foreign =
        error instanceof RdmaError && ['ENODEV', 'EADDRNOTAVAIL', 'EADDRINUSE'].includes(error.code);
      if (!asked && foreign) return null;
      throw error;
    }
    this.#servers.push(server.unref());
    return server.address()!.port;
  }

  #request(request: ConnectionRequest): void {
    const introduction = decodeIntroduction(request.privateData);
    const known =
      introduction !== null &&
      this.#token.equals(introduction.token) &&
      introduction.rank < this.size &&
      introduction.rank !== this.rank;
    if (known) this.#peer(introduction.rank).answer(request, introduction.generation);
    else request.reject();
  }

  #peer(rank: number): Peer {
    let peer = this.#peers.get(rank);
    if (peer === undefined) {
      peer = new Peer(this.#host, rank);
      this.#peers.set(rank, peer);
    }
    return peer;
  }

  get #host(): PeerHost {
    return {
      rank: this.rank,
      connectionOptions: this.#options,
      card: (rank, options) => this.#card(rank, options),
      connected: (connection, rank) => {
        this.emit('connection', connection, rank);
      },
      lost: (error) => this.emit('lost', error),
    };
  }

  #card(rank: number, options: WaitOptions): Promise<RankCard> {
    let card = this.#cards.get(rank);
    if (card === undefined) {
      card = this.#get(rank, cardKey, options).then(decodeCard);
      this.#cards.set(rank, card);
      card.catch(() => this.#cards.delete(rank));
    }
    return card;
  }

  async #finalize(): Promise<void> {
    await Promise.all([
      ...this.#servers.map((server) => server.close()),
      ...[...this.#peers.values()].map((peer) => peer.close()),
    ]);
    await this.#space.finalize();
  }

  #requireOpen(): void {
    if (this.#finalized !== undefined) throw closedError('job');
  }

  #requireRank(rank: number): void {
    requireInteger('rank', rank, 0, this.size - 1);
  }
}

function requireKey(key: unknown): void {
  if (typeof key !== 'string') throw invalidArgumentType('key', 'a string', key);
  if (key === '' || Buffer.byteLength(key) > 511 || key.includes('\0')) {
    throw invalidArgumentValue('key', key, 'must have 1 to 511 bytes, none of them 0');
  }
  if (reserved.test(key)) throw invalidArgumentValue('key', key, 'is reserved');
}

function requireAddresses(addresses: unknown): void {
  if (
    !Array.isArray(addresses) ||
    addresses.length === 0 ||
    addresses.some((each) => typeof each !== 'string')
  ) {
    throw invalidArgumentType('options.addresses', 'an array of addresses', addresses);
  }
  for (const address of addresses) {
    if (isIP(address) === 0)
      throw invalidArgumentValue('options.addresses', address, 'must be numeric addresses');
  }
}
