import { type Connection, RemoteMemory } from 'node-rdma';

/** Every promise of a connection that its program can have in its hands, each with what it was rejected with. */
export interface Witness {
  readonly established: Promise<Error | undefined>;
  readonly ready: Promise<Error | undefined>;
  readonly closed: Promise<Error | undefined>;
  /** Sends, a Write and a Read, in the order of their calls. */
  readonly queued: Promise<(Error | undefined)[]>;
  readonly received: Promise<Error | undefined>;
}

/** The peer grants no memory: a key that is wrong is as good as long as nothing of it gets to the wire. */
const nowhere = new RemoteMemory(0x1000n, 0x77, 8);

/** Takes every promise of a connection whose sends do not flow. */
export function witness(connection: Connection): Witness {
  const requests = [
    connection.send(Buffer.from('one')),
    connection.send(Buffer.from('two')),
    connection.write(nowhere, Buffer.alloc(8)),
    connection.read(nowhere),
    connection.send(Buffer.from('three')),
  ];
  return {
    established: outcome(connection.established),
    ready: outcome(connection.ready),
    closed: outcome(connection.closed),
    queued: Promise.all(requests.map(outcome)),
    received: outcome(connection.receive()),
  };
}

/** What a promise was rejected with; undefined if it was resolved. */
export function outcome(promise: Promise<unknown>): Promise<Error | undefined> {
  return promise.then(
    () => undefined,
    (error: Error) => error,
  );
}
