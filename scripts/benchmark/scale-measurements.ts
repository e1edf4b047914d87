import { runConnectionRate } from './c-program.js';
import { atLeast, atMost, type Measurement, runSides, small } from './measurement.js';
import type { ProgramCall } from './programs.js';

const sequence = 50;

const rate: Measurement = {
  name: 'connection-rate',
  title: 'connections, one after another',
  unit: 'connections/s',
  comparison: 'ratio',
  peer: 'connection-rate.c',
  ours: runSides({ program: 'connection-rate', options: { connections: sequence } }),
  theirs: (stage) => runConnectionRate(stage, 'rate', sequence),
  target: atLeast(0.8),
};

const handshakes = (peerToPeer: boolean) =>
  runSides({ program: 'handshake', options: { peerToPeer, connections: 30 } });

const handshakeCost: Measurement = {
  name: 'handshake',
  title: 'from connect() to the first Send, with peerToPeer',
  unit: 'µs',
  comparison: 'ratio',
  peer: 'a plain connection',
  ours: handshakes(true),
  theirs: handshakes(false),
  target: null,
};

const idle = 100;
/** Everything of a ping-pong fits into the young generation, and nothing is collected. */
const collectedByHand = ['--expose-gc', '--max-semi-space-size=512', '--min-semi-space-size=512'];

const idleMemory: Measurement = {
  name: 'idle-memory',
  title: 'memory of an idle connection',
  unit: 'KiB',
  comparison: 'ratio',
  peer: 'connection-rate.c',
  nodeOptions: ['--expose-gc'],
  ours: runSides({ program: 'idle-memory', options: { connections: idle } }),
  theirs: (stage) => runConnectionRate(stage, 'idle', idle),
  target: atMost(1.5),
};

const active = 10;
const messages = 100;

const among = (connections: number) =>
  runSides({ program: 'many-connections', options: { connections, active, iterations: messages } });

const manyConnections: Measurement = {
  name: 'many-connections',
  title: 'a message among 1000 connections, 10 of them active',
  unit: 'µs',
  comparison: 'ratio',
  peer: '10 connections, all active',
  ours: among(1000),
  theirs: among(10),
  target: atMost(1.15),
};

const allocation = (name: string, what: string, call: ProgramCall, limit: number | null): Measurement => ({
  name: `${name}-allocation`,
  title: `heap that a message takes, ${what}`,
  unit: `bytes a message of ${small} B`,
  comparison: 'value',
  peer: null,
  nodeOptions: collectedByHand,
  ours: runSides(call),
  theirs: null,
  target: limit === null ? null : atMost(limit),
});

const ringExchange = { size: small, iterations: 500_000 };
const facadeExchange = { size: small, iterations: 20_000 };

const allocations = [
  // What is left is not of the messages.
  allocation('ring', 'rings', { program: 'ring-allocation', options: ringExchange }, 1),
  allocation(
    'events',
    'trySend() and events',
    { program: 'facade-allocation', options: { ...facadeExchange, manner: 'events' } },
    256,
  ),
  allocation(
    'promises',
    'send() and await receive()',
    { program: 'facade-allocation', options: { ...facadeExchange, manner: 'promises' } },
    256,
  ),
];

const timer = (loaded: boolean) =>
  runSides({ program: 'timer-lateness', options: { loaded, samples: 1000 } });

const timerUnderLoad: Measurement = {
  name: 'timer',
  title: 'lateness of a 10 ms timer under full load, 99.9 %',
  unit: 'ms',
  comparison: 'difference',
  peer: 'no load',
  ours: timer(true),
  theirs: timer(false),
  target: atMost(10),
};

export const scaleMeasurements: readonly Measurement[] = [
  rate,
  handshakeCost,
  idleMemory,
  manyConnections,
  ...allocations,
  timerUnderLoad,
];
