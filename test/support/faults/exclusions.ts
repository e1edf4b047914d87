import { type Cell, everyCell, type Fault, type Stage } from './cell.js';

/** Why cells of the matrix can't exist. */
export interface Exclusion {
  readonly name: string;
  readonly reason: string;
  readonly excludes: (cell: Cell) => boolean;
}

const of =
  <T>(...values: readonly T[]) =>
  (value: T) =>
    values.includes(value);

const opening = of<Stage>('resolving', 'connecting', 'requested');
const handshake = of<Stage>('readPosted', 'goPosted');

/** A cell is excluded by the first that fits. */
export const exclusions: readonly Exclusion[] = [
  {
    name: 'no server before its request',
    reason: 'an accepting side has no connection, and learns nothing of one, before a request has arrived',
    excludes: ({ side, stage }) => side === 'passive' && of<Stage>('resolving', 'connecting')(stage),
  },
  {
    name: 'no GO before it arrives',
    reason:
      'an accepting side sees nothing of a 0-byte Read, so the time until GO is one stage for it: readPosted',
    excludes: ({ side, stage }) => side === 'passive' && stage === 'goPosted',
  },
  {
    name: 'refused once',
    reason: 'a port refuses, and a backlog is full, when a connection is asked for and at no other time',
    excludes: ({ side, stage, fault }) =>
      of<Fault>('port refused', 'backlog full')(fault) && (side === 'passive' || stage !== 'connecting'),
  },
  {
    name: 'a route is looked up once',
    reason: 'rdma_resolve_addr() looks for the route; what becomes of it later is a link that is down',
    excludes: ({ side, stage, fault }) =>
      fault === 'no route' && (side === 'passive' || stage !== 'resolving'),
  },
  {
    name: 'the link of rxe stays up',
    reason:
      'rxe 6.1 has both ends in one namespace: a connection finds a way around a link that is down, and behind one that ' +
      'was down under a connection the ends do not reach each other again in this guest',
    excludes: ({ device, fault }) => device === 'rxe' && fault === 'link down',
  },
  {
    name: 'memory is locked once',
    reason:
      'a connection locks its memory when it gets its queue pair: behind resolving, or with the request',
    excludes: ({ side, stage, fault }) =>
      fault === 'memlock exhausted' && stage !== (side === 'active' ? 'resolving' : 'requested'),
  },
  {
    name: 'root locks what it likes',
    reason:
      'the tests run as root, whose CAP_IPC_LOCK lifts the limit that ib_umem_get() sets: siw alone has its own',
    excludes: ({ device, fault }) => fault === 'memlock exhausted' && device === 'rxe',
  },
  {
    name: 'traffic breaks what only traffic can',
    reason: 'a queue is overrun, a receive is missing or too small, and access is violated by traffic',
    excludes: ({ stage, fault }) =>
      of<Fault>('queue overrun', 'too few receives', 'receive buffer too small', 'access violation')(fault) &&
      stage !== 'traffic',
  },
  {
    name: 'nothing waits when nothing is asked for',
    reason: 'a connection that is established and idle has nothing that a time-out could end',
    excludes: ({ stage, fault }) => fault === 'time-out' && stage === 'established',
  },
  {
    name: 'the gate has its own clock',
    reason:
      'an accepting side waits 10 seconds for GO whatever its options say: a peer that is stopped runs them out',
    excludes: ({ side, stage, fault }) =>
      side === 'passive' && fault === 'time-out' && (handshake(stage) || opening(stage)),
  },
];

export interface Matrix {
  readonly cells: readonly Cell[];
  readonly excluded: readonly { readonly cell: Cell; readonly by: Exclusion }[];
}

/** All cells, those that can exist and those that can't. */
export function generateMatrix(): Matrix {
  const cells: Cell[] = [];
  const excluded: { cell: Cell; by: Exclusion }[] = [];
  for (const cell of everyCell()) {
    const by = exclusions.find(({ excludes }) => excludes(cell));
    if (by === undefined) cells.push(cell);
    else excluded.push({ cell, by });
  }
  return { cells, excluded };
}
