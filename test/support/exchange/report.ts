/** What one side of an exchange is told to do, as JSON on its command line. */
export interface ExchangeTask {
  side: 'active' | 'passive';
  address: string;
  /** The passive side's; 0 there means any. */
  port: number;
  connections: number;
  /** Connections under way at once. */
  parallel: number;
  /** Messages each way of an ordinary connection. */
  messages: number;
  /** The first so many connections carry `heavyMessages` each way, from 0 bytes to the largest, to a slow reader. */
  heavy: number;
  heavyMessages: number;
  /** Options of `connect()`. */
  peerToPeer: boolean | { rtr: 'read' | 'write' | 'send' };
  timeout: number;
}

/** What became of one side's end of all connections. */
export interface ExchangeReport {
  /** Connections that ended with an error, with their codes. */
  failed: Record<string, number>;
  completed: number;
  received: number;
  /** Expected and not received. */
  lost: number;
  /** Received with another content than the message in that place has: changed, duplicated or reordered. */
  wrong: number;
  kicked: number;
  negotiated: number;
}

export function emptyReport(): ExchangeReport {
  return { failed: {}, completed: 0, received: 0, lost: 0, wrong: 0, kicked: 0, negotiated: 0 };
}

/** What the two processes tell the test. */
export type ExchangeNews = { listening: number } | { report: ExchangeReport };
