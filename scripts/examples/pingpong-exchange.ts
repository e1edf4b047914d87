import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** What a queue pair's peer has to know, as rdma-core's pingpong programs tell it. */
export interface Whereabouts {
  lid: number;
  number: number;
  psn: number;
  gid: Uint8Array;
}

/** `lid:queue pair:psn:gid` in hexadecimal, and a null byte. */
const messageLength = '0000:000000:000000:00000000000000000000000000000000'.length + 1;
const done = 'done\0';

function encode({ lid, number, psn, gid }: Whereabouts): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
  return `${hex(lid, 4)}:${hex(number, 6)}:${hex(psn, 6)}:${Buffer.from(gid).toString('hex')}\0`;
}

function decode(message: string): Whereabouts {
  const [lid = '', number = '', psn = '', gid = ''] = message.slice(0, -1).split(':');
  return {
    lid: Number.parseInt(lid, 16),
    number: Number.parseInt(number, 16),
    psn: Number.parseInt(psn, 16),
    gid: Uint8Array.from(Buffer.from(gid, 'hex')),
  };
}

async function read(socket: Socket, length: number): Promise<string> {
  for (;;) {
    const bytes: Buffer | null = socket.read(length);
    if (bytes?.length === length) return bytes.toString('latin1');
    if (socket.readableEnded) throw new Error('the peer left before it had told its queue pairs');
    await Promise.race([once(socket, 'readable'), once(socket, 'end')]);
  }
}

async function readAll(socket: Socket, count: number): Promise<Whereabouts[]> {
  const peers: Whereabouts[] = [];
  while (peers.length < count) peers.push(decode(await read(socket, messageLength)));
  return peers;
}

/** The client tells first, and says when it is ready to be sent to. */
export async function exchangeAsClient(
  host: string,
  port: number,
  own: readonly Whereabouts[],
  prepare: (peers: readonly Whereabouts[]) => void,
): Promise<void> {
  const socket = connect(port, host);
  await once(socket, 'connect');
  socket.write(own.map(encode).join(''));
  prepare(await readAll(socket, own.length));
  socket.end(done);
}

/** The server answers once its queue pairs are ready. `listening` gets the port. */
export async function exchangeAsServer(
  port: number,
  own: readonly Whereabouts[],
  prepare: (peers: readonly Whereabouts[]) => void,
  listening: (port: number) => void,
): Promise<void> {
  const server = createServer().listen(port);
  await once(server, 'listening');
  const address = server.address();
  if (typeof address === 'object' && address !== null) listening(address.port);
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  prepare(await readAll(socket, own.length));
  socket.write(own.map(encode).join(''));
  await read(socket, done.length);
  socket.end();
}
