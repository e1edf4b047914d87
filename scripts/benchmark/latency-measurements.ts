import type { Waiting } from 'node-rdma/verbs';
import { atMost, type Measurement, runSides, small } from './measurement.js';
import { runPerftest } from './perftest.js';
import { callsPerMessage, type SystemCallCounter } from './system-calls.js';

const roundTrips = 2000;

const latencyArgs = (count = roundTrips) => ['-s', String(small), '-n', String(count), '-H'];

function pingPong(waiting: Waiting, limit: number, peer: string, ...args: string[]): Measurement {
  const options = { waiting, size: small, iterations: roundTrips };
  return {
    name: `ping-pong-${waiting}`,
    title: `${small} B Send ping-pong, ${waiting}`,
    unit: 'µs, half a round trip',
    comparison: 'ratio',
    peer,
    ours: runSides({ program: 'send-latency', options }),
    theirs: (stage) =>
      runPerftest(stage, {
        tool: 'ib_send_lat',
        args: [...latencyArgs(), ...args],
        column: 't_typical',
      }),
    target: atMost(limit),
  };
}

function memoryLatency(operation: 'write' | 'read'): Measurement {
  const waiting = operation === 'write' ? 'manual' : 'poll';
  const options = { waiting, size: small, iterations: roundTrips } as const;
  const tool = `ib_${operation}_lat`;
  return {
    name: `${operation}-latency`,
    title: `${small} B ${operation} latency, ${operation === 'write' ? 'watching memory' : 'poll'}`,
    unit: operation === 'write' ? 'µs, half a round trip' : 'µs, a round trip',
    comparison: 'ratio',
    peer: tool,
    ours: runSides({ program: `${operation}-latency`, options }),
    theirs: (stage) => runPerftest(stage, { tool, args: latencyArgs(), column: 't_typical' }),
    target: null,
  };
}

/** Round trips of two runs: what both have in common is no cost of a message. */
const few = 500;
const many = 3000;

const systemCalls: Measurement = {
  name: 'system-calls',
  title: `system calls of a ${small} B round trip, adaptive`,
  unit: 'calls of the client',
  comparison: 'difference',
  peer: 'ib_send_lat',
  ours: async ({ sides, address }) => {
    const run = async (iterations: number, counter: SystemCallCounter) => {
      const options = { waiting: 'adaptive', size: small, iterations } as const;
      const before = counter.of(sides.clientPid);
      await sides.run({ program: 'send-latency', options }, address);
      return counter.of(sides.clientPid) - before;
    };
    return { value: await callsPerMessage(run, few, many) };
  },
  theirs: async (stage) => {
    const run = async (iterations: number, counter: SystemCallCounter) => {
      let pid = 0;
      await runPerftest(stage, {
        tool: 'ib_send_lat',
        args: latencyArgs(iterations),
        column: 't_typical',
        onClient: (client) => {
          pid = client;
        },
      });
      return counter.of(pid);
    };
    return { value: await callsPerMessage(run, few, many) };
  },
  target: atMost(0.1),
};

const tcp = runSides({ program: 'tcp-latency', options: { size: small, iterations: roundTrips } });

const tcpPingPong: Measurement = {
  name: 'tcp-ping-pong',
  title: `${small} B ping-pong, poll`,
  unit: 'µs, half a round trip',
  comparison: 'ratio',
  peer: 'node:net',
  ours: runSides({
    program: 'send-latency',
    options: { waiting: 'poll', size: small, iterations: roundTrips },
  }),
  theirs: tcp,
  target: atMost(1),
};

const facade = { program: 'facade-latency', options: { size: small, iterations: roundTrips } } as const;

const facadePingPong: Measurement = {
  name: 'facade-ping-pong',
  title: `${small} B ping-pong of a Connection`,
  unit: 'µs, half a round trip',
  comparison: 'ratio',
  peer: 'our rings',
  ours: runSides(facade),
  theirs: runSides({
    program: 'send-latency',
    options: { waiting: 'adaptive', size: small, iterations: roundTrips },
  }),
  target: null,
};

export const latencyMeasurements: readonly Measurement[] = [
  pingPong('adaptive', 1.3, 'ib_send_lat'),
  pingPong('poll', 1.25, 'ib_send_lat'),
  pingPong('event', 1.5, 'ib_send_lat -e', '-e'),
  systemCalls,
  memoryLatency('write'),
  memoryLatency('read'),
  tcpPingPong,
  facadePingPong,
];
