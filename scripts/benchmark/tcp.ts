import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import type { Program, ServerTask } from './program.js';
import type { RingStreamOptions } from './ring-stream.js';
import { latencySample } from './sample.js';

/** Round trips before the first that is measured. */
const warmUp = 500;

async function serveOne(
  { address, listening }: Pick<ServerTask<unknown>, 'address' | 'listening'>,
  onSocket: (socket: Socket) => void,
): Promise<void> {
  const server = createServer({ noDelay: true }).listen(0, address);
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('the server has no port');
  listening(bound.port);
  const [socket] = (await once(server, 'connection')) as [Socket];
  onSocket(socket);
  const closed = once(socket, 'close');
  server.close();
  await closed;
}

async function open(address: string, port: number): Promise<Socket> {
  const socket = createConnection({ host: address, port, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

/** Ping-pong over TCP: half of the round trip in microseconds. */
export const tcpLatency: Program<{ readonly size: number; readonly iterations: number }> = {
  async serve(task) {
    await serveOne(task, (socket) => socket.on('data', (data) => socket.write(data)));
    return { value: 0 };
  },

  async connect({ address, port, options: { size, iterations } }) {
    const socket = await open(address, port);
    const message = Buffer.alloc(size);
    const values = new Float64Array(iterations);
    await new Promise<void>((resolve) => {
      let trips = -warmUp;
      let received = 0;
      let start = performance.now();
      socket.on('data', (data) => {
        received += data.length;
        if (received < size) return;
        received = 0;
        const now = performance.now();
        if (trips >= 0) values[trips] = (now - start) * 500;
        if (++trips === iterations) return resolve();
        start = now;
        socket.write(message);
      });
      socket.write(message);
    });
    socket.end();
    await once(socket, 'close');
    return latencySample(values);
  },
};

/** One-way transfer over TCP in pieces of `size`: pieces per second, and the processor time of both sides. */
export const tcpStream: Program<Omit<RingStreamOptions, 'operation'>> = {
  async serve(task) {
    const { size, iterations } = task.options;
    let cpu = process.cpuUsage();
    await serveOne(task, (socket) => {
      cpu = process.cpuUsage();
      let left = size * iterations;
      socket.on('data', (data) => {
        left -= data.length;
        if (left > 0) return;
        cpu = process.cpuUsage(cpu);
        socket.end('.');
      });
    });
    return { value: 0, cpu: cpu.user + cpu.system };
  },

  async connect({ address, port, options: { size, iterations } }) {
    const socket = await open(address, port);
    const piece = Buffer.alloc(size);
    const before = process.cpuUsage();
    const start = performance.now();
    for (let i = 0; i < iterations; i++) {
      if (!socket.write(piece)) await once(socket, 'drain');
    }
    await once(socket, 'data');
    const seconds = (performance.now() - start) / 1000;
    const cpu = process.cpuUsage(before);
    socket.end();
    await once(socket, 'close');
    return { value: iterations / seconds, cpu: cpu.user + cpu.system };
  },
};
