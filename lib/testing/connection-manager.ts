import { isIPv6 } from 'node:net';
import { constants } from 'node:os';
import type {
  NativeAddress,
  NativeCm,
  NativeCmEvent,
  NativeCmIdInfo,
  NativeConnectionParameters,
} from '../binding/cm.js';
import type { NativeHooks } from '../binding/native.js';
import type { DataPath } from './data-path.js';
import { CmEndpoint, StandInChannel } from './endpoint.js';
import type { Failures } from './failures.js';
import type { Objects } from './objects.js';
import { queuePairStates } from './queues.js';
import type { StandInWire } from './wire.js';

const { ECONNREFUSED, ECONNRESET, EADDRINUSE, EINVAL, ENOTCONN, ETIMEDOUT } = constants.errno;

/** `rdma_cm_event_type` */
const events = {
  addressResolved: 0,
  routeResolved: 2,
  connectRequest: 4,
  unreachable: 7,
  rejected: 8,
  established: 9,
  disconnected: 10,
} as const;

/** What InfiniBand and RoCE pad private data to, and their reasons for a reject. */
const infiniband = { request: 56, reply: 196, reject: 148, nobodyListens: 8, consumer: 28 } as const;

const families = { IPv4: 2, IPv6: 10 } as const;
const firstEphemeralPort = 49152;

const noParameters: Omit<NativeConnectionParameters, 'queuePair'> = {
  responderResources: 0,
  initiatorDepth: 0,
  flowControl: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  privateData: null,
};

type CmFunctions = Pick<
  NativeCm,
  | 'createEventChannel'
  | 'destroyEventChannel'
  | 'referenceEventChannel'
  | 'createId'
  | 'bindAddress'
  | 'listen'
  | 'resolveAddress'
  | 'resolveRoute'
  | 'connect'
  | 'accept'
  | 'reject'
  | 'disconnect'
  | 'destroyId'
  | 'describeId'
>;

/** What rdma_cm does: every address is this process's own, and belongs to the one device. */
export class ConnectionManager implements CmFunctions {
  readonly #objects: Objects;
  readonly #wire: StandInWire;
  readonly #failures: Failures;
  readonly #iwarp: boolean;
  readonly #data: DataPath;
  #hooks: NativeHooks | undefined;
  #nextPort = firstEphemeralPort;

  constructor(objects: Objects, wire: StandInWire, failures: Failures, iwarp: boolean, data: DataPath) {
    this.#objects = objects;
    this.#wire = wire;
    this.#failures = failures;
    this.#iwarp = iwarp;
    this.#data = data;
  }

  start(hooks: NativeHooks): void {
    this.#hooks = hooks;
  }

  #error(errno: number, syscall: string): Error {
    return this.#hooks!.createError(errno, syscall);
  }

  createEventChannel(): number {
    return this.#objects.add(() => new StandInChannel());
  }

  async destroyEventChannel(channel: number): Promise<void> {
    this.#objects.get(StandInChannel, channel).close();
    this.#objects.remove(channel);
  }

  referenceEventChannel(channel: number, alive: boolean): void {
    this.#objects.get(StandInChannel, channel).reference(alive);
  }

  createId(channel: number): number {
    return this.#objects.add((handle) => new CmEndpoint(handle, channel));
  }

  bindAddress(id: number, address: string, port: number): void {
    const endpoint = this.#objects.get(CmEndpoint, id);
    if (port !== 0 && this.#listenerAt(address, port) !== undefined)
      throw this.#error(EADDRINUSE, 'rdma_bind_addr');
    endpoint.local = { address, port: port === 0 ? this.#nextPort++ : port };
    endpoint.bound = true;
  }

  listen(id: number): void {
    const errno = this.#failures.takeCall('listen');
    if (errno !== undefined) throw this.#error(errno, 'rdma_listen');
    this.#objects.get(CmEndpoint, id).listening = true;
  }

  #listenerAt(address: string, port: number): CmEndpoint | undefined {
    const any = isIPv6(address) ? '::' : '0.0.0.0';
    for (const endpoint of this.#objects.all(CmEndpoint)) {
      const { local, listening } = endpoint;
      if (!listening || local.port !== port) continue;
      if (local.address === address || local.address === any || address === any) return endpoint;
    }
    return undefined;
  }

  resolveAddress(id: number, source: NativeAddress | null, destination: NativeAddress): void {
    const endpoint = this.#objects.get(CmEndpoint, id);
    endpoint.remote = destination;
    endpoint.local = { address: source?.address ?? destination.address, port: this.#nextPort++ };
    endpoint.bound = true;
    setImmediate(() => this.#tell(endpoint, events.addressResolved));
  }

  resolveRoute(id: number): void {
    const endpoint = this.#objects.get(CmEndpoint, id);
    setImmediate(() => this.#tell(endpoint, events.routeResolved));
  }

  async connect(id: number, parameters: NativeConnectionParameters): Promise<void> {
    const endpoint = this.#objects.get(CmEndpoint, id);
    endpoint.parameters = parameters;
    endpoint.state = 'connecting';
    const errno = this.#failures.takeCall('connect');
    if (errno === ETIMEDOUT) {
      this.#wire.carry(() => this.#tell(endpoint, events.unreachable, { status: -ETIMEDOUT }));
      return;
    }
    const { address, port } = endpoint.remote;
    const refusal = errno ?? (this.#listenerAt(address, port) === undefined ? ECONNREFUSED : undefined);
    // siw makes the TCP connection within the call; elsewhere the peer answers.
    if (refusal !== undefined && (this.#iwarp || refusal !== ECONNREFUSED))
      throw this.#error(refusal, 'rdma_connect');
    this.#wire.carry(() => this.#request(endpoint, parameters));
  }

  #request(client: CmEndpoint, parameters: NativeConnectionParameters): void {
    const listener = this.#listenerAt(client.remote.address, client.remote.port);
    if (listener === undefined) {
      const status = this.#iwarp ? -ECONNREFUSED : infiniband.nobodyListens;
      this.#tell(client, events.rejected, { status });
      return;
    }
    const handle = this.#objects.add((handle) => new CmEndpoint(handle, listener.channel));
    const server = this.#objects.get(CmEndpoint, handle);
    Object.assign(server, { listener, peer: client, bound: true, state: 'requested' });
    server.local = client.remote;
    server.remote = client.local;
    client.peer = server;
    const { privateData, initiatorDepth, responderResources } = parameters;
    this.#tell(server, events.connectRequest, {
      listener: listener.handle,
      privateData: this.#padded(privateData, infiniband.request),
      // Each side is told what it may do, which is what the other grants.
      initiatorDepth: responderResources,
      responderResources: initiatorDepth,
    });
  }

  accept(id: number, parameters: NativeConnectionParameters): void {
    const server = this.#objects.get(CmEndpoint, id);
    const client = server.peer;
    if (client === undefined || server.state !== 'requested') throw this.#error(EINVAL, 'rdma_accept');
    if (client.state !== 'connecting') throw this.#error(ECONNRESET, 'rdma_accept');
    this.#join(server);
    setImmediate(() => this.#tell(server, events.established));
    this.#wire.carry(() => {
      if (client.state !== 'connecting') return;
      this.#join(client);
      const { privateData, initiatorDepth, responderResources } = parameters;
      this.#tell(client, events.established, {
        privateData: this.#padded(privateData, infiniband.reply),
        initiatorDepth: responderResources,
        responderResources: initiatorDepth,
      });
    });
  }

  #join(endpoint: CmEndpoint): void {
    endpoint.state = 'connected';
    if (endpoint.queuePair !== undefined) endpoint.queuePair.state = queuePairStates.ready;
  }

  reject(id: number, privateData: Uint8Array | null): void {
    const server = this.#objects.get(CmEndpoint, id);
    if (server.state !== 'requested') throw this.#error(EINVAL, 'rdma_reject');
    server.state = 'ended';
    const client = server.peer!;
    const status = this.#iwarp ? -ECONNRESET : infiniband.consumer;
    this.#wire.carry(() => {
      if (client.state !== 'connecting') return;
      client.state = 'ended';
      this.#tell(client, events.rejected, {
        status,
        privateData: this.#padded(privateData, infiniband.reject),
      });
    });
  }

  disconnect(id: number): void {
    const endpoint = this.#objects.get(CmEndpoint, id);
    if (endpoint.state === 'idle' || endpoint.state === 'requested')
      throw this.#error(ENOTCONN, 'rdma_disconnect');
    this.end(endpoint);
  }

  /** Ends a connection from one side: that one now, the other when it hears of it. */
  end(endpoint: CmEndpoint): void {
    if (!endpoint.connected) return;
    this.#leave(endpoint);
    const { peer } = endpoint;
    this.#wire.carry(() => {
      if (peer?.connected) this.#leave(peer);
    });
  }

  #leave(endpoint: CmEndpoint): void {
    endpoint.state = 'ended';
    if (endpoint.queuePair !== undefined) this.#data.fail(endpoint.queuePair);
    setImmediate(() => this.#tell(endpoint, events.disconnected));
  }

  async destroyId(id: number): Promise<void> {
    const endpoint = this.#objects.find(CmEndpoint, id);
    if (endpoint === undefined) return;
    if (endpoint.state === 'requested') this.reject(id, null);
    this.end(endpoint);
    endpoint.state = 'ended';
    this.#objects.remove(id);
  }

  describeId(id: number): NativeCmIdInfo {
    const { local, remote, bound } = this.#objects.get(CmEndpoint, id);
    return {
      localAddress: local.address,
      localPort: local.port,
      localFamily: familyOf(local),
      remoteAddress: remote.address,
      remotePort: remote.port,
      remoteFamily: familyOf(remote),
      portNumber: Number(bound),
    };
  }

  #padded(data: Uint8Array | null, length: number): Uint8Array {
    const bytes = Buffer.alloc(this.#iwarp ? (data?.length ?? 0) : length);
    if (data !== null) bytes.set(data);
    return bytes;
  }

  #tell(endpoint: CmEndpoint, type: number, details: Partial<NativeCmEvent> = {}): void {
    // It was destroyed meanwhile.
    if (this.#objects.find(CmEndpoint, endpoint.handle) === undefined) return;
    const { privateData: _, ...depths } = noParameters;
    this.#hooks!.onCmEvent({
      ...{ type, id: endpoint.handle, listener: 0, status: 0, qpNumber: 0, group: 0 },
      privateData: new Uint8Array(0),
      ...depths,
      ...details,
    });
  }
}

function familyOf({ address }: NativeAddress): number {
  return isIPv6(address) ? families.IPv6 : families.IPv4;
}
