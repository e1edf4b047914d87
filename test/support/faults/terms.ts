import type { ConnectOptions } from 'node-rdma';
import type { Cell } from './cell.js';
import { expectedEnds } from './expectations.js';
import type { Part } from './messages.js';

/** Milliseconds that each packet takes: every stage lasts longer than a fault takes to come about. */
export const wireDelay = 150;

/** Milliseconds: for what is not to come, and for what is to come however slow the machine is. */
const short = 8_000;
const long = 40_000;

/** How long the sends of a cell wait, whatever for: within it they settle. */
export function patienceOf(cell: Cell): number {
  const ends = expectedEnds(cell) ?? [];
  return ends.includes('alive') || ends.includes('ETIMEDOUT') ? short : long;
}

const keepAlive = { interval: 500 };
const timeouts = { resolving: 100, connecting: 450, requested: 1500 } as const;

/** Faults that flow control would prevent. */
function uncontrolled({ fault }: Cell): boolean {
  return ['too few receives', 'receive buffer too small', 'access violation'].includes(fault);
}

function isPlain(cell: Cell): boolean {
  return cell.stage === 'established' || uncontrolled(cell);
}

function peerToPeerOf(cell: Cell): ConnectOptions['peerToPeer'] {
  if (isPlain(cell)) return false;
  const timeout = cell.side === 'active' && cell.fault === 'time-out' ? wireDelay : short;
  if (cell.side === 'active' && cell.stage === 'readPosted') return { negotiate: 'off', timeout };
  if (cell.stage === 'readPosted' || cell.stage === 'goPosted') return { timeout };
  return true;
}

/** What the watched side is given, as a client or as a server. */
export function subjectOptions(cell: Cell): Partial<ConnectOptions> {
  const { stage, fault, side } = cell;
  const establishing = stage === 'resolving' || stage === 'connecting' || stage === 'requested';
  return {
    keepAlive,
    timeout: fault === 'time-out' && establishing ? timeouts[stage] : establishing ? patienceOf(cell) : long,
    ...(fault === 'queue overrun' ? { highWaterMark: 16_384 } : {}),
    ...(side === 'active' ? { peerToPeer: peerToPeerOf(cell) } : {}),
  };
}

/** What the other side plays. */
export function peerPart(cell: Cell, host: string, port: number): Part {
  const { side, stage, fault } = cell;
  const unanswered = side === 'active' && (stage === 'requested' || fault === 'backlog full');
  return {
    type: 'play',
    role: side === 'active' ? 'server' : 'client',
    host,
    port,
    options: {
      timeout: long,
      ...(fault === 'receive buffer too small' ? { maxMessageSize: 64 } : {}),
      ...(fault === 'too few receives' ? { receiveDepth: 4 } : {}),
      ...(side === 'passive' ? { peerToPeer: peerToPeerOf(cell) } : {}),
    },
    behaviour: unanswered ? 'silent' : fault === 'too few receives' ? 'hold' : 'echo',
    speaks: isPlain(cell),
  };
}
