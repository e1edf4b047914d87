import { type AllocationOptions, type FacadeManner, facadeAllocation, ringAllocation } from './allocation.js';
import { type ConnectionRateOptions, connectionRate } from './connection-rate.js';
import { type FacadeLatencyOptions, facadeLatency } from './facade-latency.js';
import { facadeStream } from './facade-stream.js';
import { type HandshakeOptions, handshake } from './handshake.js';
import { type IdleOptions, idleMemory, type ManyOptions, manyConnections } from './many.js';
import type { Program } from './program.js';
import { type RingLatencyOptions, readLatency, sendLatency, writeLatency } from './ring-latency.js';
import { type RingStreamOptions, ringStream } from './ring-stream.js';
import type { Sample } from './sample.js';
import { tcpLatency, tcpStream } from './tcp.js';
import { type TimerOptions, timerLateness } from './timer.js';

interface OptionsOf {
  'send-latency': RingLatencyOptions;
  'read-latency': RingLatencyOptions;
  'write-latency': RingLatencyOptions;
  'ring-stream': RingStreamOptions;
  'ring-allocation': AllocationOptions;
  'facade-latency': FacadeLatencyOptions;
  'facade-stream': RingStreamOptions;
  'facade-allocation': AllocationOptions & { readonly manner: FacadeManner };
  'tcp-latency': FacadeLatencyOptions;
  'tcp-stream': Omit<RingStreamOptions, 'operation'>;
  'connection-rate': ConnectionRateOptions;
  handshake: HandshakeOptions;
  'many-connections': ManyOptions;
  'idle-memory': IdleOptions;
  'timer-lateness': TimerOptions;
}

export type ProgramName = keyof OptionsOf;

/** What is to be run, and with what. */
export interface CallOf<Name extends ProgramName> {
  readonly program: Name;
  readonly options: OptionsOf[Name];
}

export type ProgramCall = { [Name in ProgramName]: CallOf<Name> }[ProgramName];

const programs: { readonly [Name in ProgramName]: Program<OptionsOf[Name]> } = {
  'send-latency': sendLatency,
  'read-latency': readLatency,
  'write-latency': writeLatency,
  'ring-stream': ringStream,
  'ring-allocation': ringAllocation,
  'facade-latency': facadeLatency,
  'facade-stream': facadeStream,
  'facade-allocation': facadeAllocation,
  'tcp-latency': tcpLatency,
  'tcp-stream': tcpStream,
  'connection-rate': connectionRate,
  handshake,
  'many-connections': manyConnections,
  'idle-memory': idleMemory,
  'timer-lateness': timerLateness,
};

/** Runs one side of a call: the server's where no port is given. */
export function runSide<Name extends ProgramName>(
  { program, options }: CallOf<Name>,
  address: string,
  port: number | undefined,
  listening: (port: number) => void,
): Promise<Sample> {
  const { serve, connect }: Program<OptionsOf[Name]> = programs[program];
  return port === undefined ? serve({ address, options, listening }) : connect({ address, port, options });
}
