import {
  type Connection,
  type ConnectOptions,
  createServer,
  type Server,
  type ServerOptions,
} from 'node-rdma';
import { onTestFinished } from 'vitest';
import { decodePrivateData, encodePrivateData, type Header } from '#lib/peer-to-peer/header.js';
import { dial } from './connection-pair.js';
import { siw } from './devices.js';
import type { RequestOptions } from './mpa/peer.js';
import { StrictPeer } from './mpa/strict-peer.js';

/** What iWARP's private data holds. */
const limit = 251;

/** A header before the user's private data, as this library's peers have it. */
export function privateDataOf(header: Header | null, user = ''): Uint8Array {
  return encodePrivateData(header, Buffer.from(user), limit);
}

/** What a client offers that asks for the Read and for no credits; `overrides` change it. */
export function offer(overrides: Partial<Header> = {}): Header {
  return {
    peerToPeer: true,
    readRtr: true,
    sendRtr: true,
    writeRtr: false,
    flowControl: false,
    responderResources: 1,
    initiatorDepth: 1,
    receiveCredits: 0,
    maxMessageSize: 8192,
    rkey: 1,
    ...overrides,
  };
}

/** The answer that a server gives to an offer of the Read; `overrides` change it. */
export function answer(overrides: Partial<Header> = {}): Header {
  return offer({ sendRtr: false, ...overrides });
}

/** An active side that has asked a strict peer for a connection. */
export interface Dialled {
  readonly client: Connection;
  readonly peer: StrictPeer;
  /** The header in front of the private data of the request. */
  readonly header: Header | null;
  /** The private data of the request behind the header. */
  readonly user: Buffer;
}

/** Connects to a strict peer, which has the request when this resolves. */
export async function dialPeer(options: Partial<ConnectOptions> = {}): Promise<Dialled> {
  const peer = await StrictPeer.listen({ host: siw.address });
  onTestFinished(() => peer.close());
  const client = dial(siw, peer.localAddress.port, options);
  const { header, user } = decodePrivateData((await peer.receiveRequest()).privateData);
  return { client, peer, header, user: Buffer.from(user) };
}

/** A strict peer whose request a server has accepted, and the connection that this made. */
export interface Answered {
  readonly peer: StrictPeer;
  readonly accepted: Connection;
  readonly server: Server;
  /** The header in front of the private data of the reply. */
  readonly header: Header | null;
}

/** Lets a strict peer ask a server; `speak` is called as soon as the server program has a connection to write to. */
export async function askServer(
  request: RequestOptions,
  options: ServerOptions,
  speak: (accepted: Connection) => void,
): Promise<Answered> {
  const { server, peer } = await reachServer(options);
  const answered = new Promise<Connection>((resolve) => {
    server.once('request', (incoming) => {
      const accepted = incoming.accept();
      // A peer that ends in the middle of a connection is no error of this end's.
      accepted.on('error', () => {});
      onTestFinished(() => void accepted.destroy());
      speak(accepted);
      resolve(accepted);
    });
  });
  await peer.sendRequest(request);
  const accepted = await answered;
  const reply = await peer.receiveReply();
  return { peer, accepted, server, header: decodePrivateData(reply.privateData).header };
}

/** A server and a strict peer that has a TCP connection to it, and nothing else yet. */
export async function reachServer(options: ServerOptions): Promise<{ server: Server; peer: StrictPeer }> {
  const server = createServer(options);
  onTestFinished(() => server.close());
  await server.listen({ host: siw.address });
  const peer = await StrictPeer.connect({ host: siw.address, port: server.address()!.port });
  onTestFinished(() => peer.close());
  return { server, peer };
}

export function text(payload: Uint8Array): string {
  return Buffer.from(payload).toString();
}
