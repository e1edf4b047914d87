import { substituteNative } from '../binding/addon.js';
import type { Native, NativeHooks, NativeRings } from '../binding/native.js';
import { RdmaError, requireInteger, requireOneOf, requireOptions } from '../errors.js';
import { ConnectionManager } from './connection-manager.js';
import { DataPath } from './data-path.js';
import { StandInDevice } from './device.js';
import { CmEndpoint } from './endpoint.js';
import { type Failing, Failures } from './failures.js';
import { Objects } from './objects.js';
import { layout, Records } from './records.js';
import { StandInWire } from './wire.js';

/** What {@link useStandIn} makes. */
export interface StandInOptions {
  /** Whose manners it has, as in `Device`: `'iwarp'` (the default) or `'infiniband'`. */
  transport?: 'iwarp' | 'infiniband' | undefined;
}

/** A longer delay than this is a test that waits for nothing. */
const longestDelay = 60_000;

const failing = ['connect', 'listen', 'allocate', 'send', 'write', 'read'] as const;

/** An RDMA device that exists in this process only, and what a test can do to it. Made by {@link useStandIn}. */
export class StandIn {
  readonly #objects = new Objects();
  readonly #wire = new StandInWire();
  readonly #failures = new Failures();
  readonly #manager: ConnectionManager;

  /** @internal */
  constructor(options: StandInOptions = {}) {
    requireOptions('options', options);
    const { transport = 'iwarp' } = options;
    const iwarp = requireOneOf('options.transport', transport, ['iwarp', 'infiniband']) === 'iwarp';
    const records = new Records();
    const data = new DataPath(this.#objects, records, this.#wire, this.#failures, iwarp, ({ endpoint }) => {
      if (endpoint !== undefined) this.#manager.end(endpoint);
    });
    const manager = new ConnectionManager(this.#objects, this.#wire, this.#failures, iwarp, data);
    this.#manager = manager;
    const device = new StandInDevice(this.#objects, this.#failures, iwarp, data);
    substituteNative(
      nativeOf(manager, device, {
        layout,
        flush: () => data.flush(),
        initialize: (hooks) => {
          for (const part of [data, manager, device]) part.start(hooks);
          return records.rings;
        },
      }),
    );
  }

  /** Milliseconds that everything takes from one end of a connection to the other: 0 to 60,000; 0 at first. */
  get delay(): number {
    return this.#wire.delay;
  }

  set delay(milliseconds: number) {
    this.#wire.delay = requireInteger('delay', milliseconds, 0, longestDelay);
  }

  /**
   * Lets the next thing of its kind fail: a call (`'connect'`, `'listen'`, `'allocate'`) with an errno
   * (`'ECONNREFUSED'`, `'ENOMEM'`), a work request (`'send'`, `'write'`, `'read'`) with a status of `ibv_poll_cq(3)`
   * (`'RETRY_EXC_ERR'`), which ends its connection. Called again, the one after that fails as well.
   */
  failNext(what: Failing, code: string): void {
    this.#failures.add(requireOneOf('what', what, failing), code);
  }

  /** Nothing arrives any more, and nobody is told, until {@link heal}. */
  partition(): void {
    this.#wire.cut();
  }

  /** Ends a {@link partition}: what was held arrives. */
  heal(): void {
    this.#wire.heal();
  }

  /** Ends every connection, as the death of its peer does. */
  disconnectAll(): void {
    for (const endpoint of [...this.#objects.all(CmEndpoint)]) this.#manager.end(endpoint);
  }

  /** What is open, by kind: to see that a program has closed what it opened. */
  get open(): Readonly<Record<string, number>> {
    return this.#objects.counts();
  }
}

type Rest = Pick<Native, 'layout' | 'flush'> & { initialize(hooks: NativeHooks): NativeRings };

/** The parts as the addon that they stand in for: what none of them can do is `ENOTSUP`. */
function nativeOf(manager: ConnectionManager, device: StandInDevice, rest: Rest): Native {
  const parts: readonly object[] = [rest, manager, device];
  return new Proxy({} as Native, {
    get(_, name) {
      for (const part of parts) {
        const value: unknown = Reflect.get(part, name);
        if (typeof value === 'function') return value.bind(part);
        if (value !== undefined) return value;
      }
      return () => {
        throw new RdmaError('ENOTSUP', `The stand-in has no ${String(name)}: that takes a device`);
      };
    },
  });
}

/**
 * Puts a stand-in in the place of the RDMA devices of this environment (the process, or a worker): what connects and
 * listens afterwards does so in this process, without libraries, kernel and privileges. Every address is one of it.
 * Connections behave as on the transport that it stands in for: flow control, order, remote memory, the handshake of
 * `peerToPeer`, errors and their codes; times and the losses of a real wire it does not show.
 *
 * ```js
 * const standIn = useStandIn();
 * const server = createServer((connection) => connection.send(Buffer.from('hello')));
 * await server.listen({ port: 7471 });
 * const connection = connect({ host: '10.0.0.1', port: 7471, peerToPeer: true });
 * console.log((await connection.receive())?.toString());
 * ```
 *
 * @throws `ERR_RDMA_IN_USE` when RDMA was used in this environment before; TypeError for wrong options
 */
export function useStandIn(options?: StandInOptions): StandIn {
  return new StandIn(options);
}
