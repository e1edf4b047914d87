import type { ConnectOptions } from 'node-rdma';
import type { Cell } from './cell.js';

/** What the peer of a watched connection plays. */
export interface Part {
  readonly type: 'play';
  readonly role: 'server' | 'client';
  readonly host: string;
  /** Of the server, for a client. */
  readonly port: number;
  readonly options: Partial<ConnectOptions>;
  /** `echo` sends back what comes, `silent` leaves requests unanswered, `hold` keeps the receives of what comes. */
  readonly behaviour: 'echo' | 'silent' | 'hold';
  /** For a client: sends a first message, by which a plain server may speak. */
  readonly speaks: boolean;
}

/** What the process with the watched connection is told to do. */
export interface Begin {
  readonly type: 'begin';
  readonly cell: Cell;
  /** Where to connect to, or to listen. */
  readonly host: string;
  readonly port: number;
}

export type Order =
  | Part
  | Begin
  /** The fault is there: see what comes of it. */
  | { readonly type: 'go' }
  /** Opens a connection of this process to itself, at this address, which no fault concerns. */
  | { readonly type: 'open bystander'; readonly host: string }
  | { readonly type: 'use bystander' }
  /** Closes everything, and tells which native objects are left. */
  | { readonly type: 'finish' }
  /** Writes to memory that the other side has not granted. */
  | { readonly type: 'violate' };

/** What became of the watched connection. */
export interface Result {
  /**
   * The code of the error that ended it; `closed` without one; `whole` if it went on and every message came back, `alive`
   * if it went on and they did not.
   */
  readonly end: string;
  /** The codes of the sends in their order; `ok` for those that were resolved. */
  readonly sends: readonly string[];
  /** What an invariant says that does not hold. */
  readonly broken: readonly string[];
}

export type Told =
  | { type: 'loaded' }
  | { type: 'listening'; port: number }
  | { type: 'request' }
  | { type: 'reached' }
  | { type: 'settled'; result: Result }
  | { type: 'bystander'; exchanged: boolean }
  | { type: 'done'; left: Record<string, number> }
  | { type: 'failed'; message: string };
