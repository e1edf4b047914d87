import { channel } from 'node:diagnostics_channel';
import { debuglog } from 'node:util';
import type { Step } from '../peer-to-peer/handshake.js';

const names = ['connecting', 'established', 'ready', 'closed', 'step'] as const;

/** What happens to connections, as it is published on diagnostics channels. */
export type TraceName = (typeof names)[number];

export interface TraceDetails {
  /** What ended the connection, on `rdma:connection:closed`. */
  error?: Error | undefined;
  /** A step of the peer-to-peer handshake and its time (`performance.now()`), on `rdma:connection:step`. */
  step?: Step;
  at?: number;
}

const channels = Object.fromEntries(names.map((name) => [name, channel(`rdma:connection:${name}`)] as const));
const log = debuglog('rdma');

let count = 0;

/** The number by which one connection is told from another in the log. */
export function nextNumber(): number {
  return ++count;
}

/** What the steps of the handshake mean, for a person. */
const steps: Readonly<Record<Step, string>> = {
  connecting: 'asks the peer for the connection',
  accepted: 'has accepted the request',
  established: 'is established: both ends know of one another',
  readPosted: 'posts the 0-byte Read that MPA lets go first',
  readCompleted: 'has its Read answered: the path works in both directions',
  writePosted: 'posts a 0-byte Write, which MPA lets go first',
  writeCompleted: 'has its Write completed',
  goPosted: 'posts GO: the peer may send when it has come',
  goCompleted: 'has sent GO',
  goReceived: 'has received GO: the peer is ready',
  kickPosted: 'posts a 0-byte Write, as nothing has come: the kernel may have lost a wake-up',
  kickCompleted: 'has its 0-byte Write completed',
  held: 'holds its sends until the peer has sent something',
  released: 'lets its sends flow',
  failed: 'gives its handshake up',
};

/** What the trace looks at: a `Connection`. */
interface Traced {
  readonly localAddress?: string;
  readonly localPort?: number;
  readonly remoteAddress?: string;
  readonly remotePort?: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

function explain(name: TraceName, connection: object, { error, step }: TraceDetails): string {
  const { localAddress, localPort, remoteAddress, remotePort, bytesRead, bytesWritten } =
    connection as Traced;
  switch (name) {
    case 'connecting':
      return 'begins';
    case 'established':
      return `is between ${localAddress}:${localPort} here and ${remoteAddress}:${remotePort}`;
    case 'ready':
      return 'is ready';
    case 'step':
      return steps[step!];
    case 'closed': {
      const how = error === undefined ? 'in order' : `by ${error.message}`;
      return `has ended, ${how}; ${bytesRead} bytes read, ${bytesWritten} written`;
    }
  }
}

/** Tells `NODE_DEBUG=rdma`, and who subscribes to `rdma:connection:…`; these get `{ connection, …details }`. */
export function trace(name: TraceName, connection: object, number: number, details: TraceDetails = {}): void {
  if (log.enabled) log('connection %d %s', number, explain(name, connection, details));
  const subscribed = channels[name]!;
  if (subscribed.hasSubscribers) subscribed.publish({ connection, ...details });
}
