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

/** Tells `NODE_DEBUG=rdma`, and who subscribes to `rdma:connection:…`; these get `{ connection, …details }`. */
export function trace(name: TraceName, connection: object, number: number, details: TraceDetails = {}): void {
  if (log.enabled) log('connection %d: %s %o', number, name, details.error ?? details.step ?? '');
  const subscribed = channels[name]!;
  if (subscribed.hasSubscribers) subscribed.publish({ connection, ...details });
}
