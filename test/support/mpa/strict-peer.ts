import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { answerEnhancedSetup } from './enhanced-setup.js';
import { MpaConnection } from './mpa-connection.js';
import type { MpaFrame } from './mpa-frame.js';
import type { Fpdu, TimedFrame } from './mpa-stream.js';
import type { Address, Peer, ReplyOptions, RequestOptions, TerminateOptions, Wait } from './peer.js';
import { describeSegment, type Opcode, type ReadRequest, type Send } from './segment.js';

/** Payload of one segment: an FPDU of it fits the segment size of any Ethernet. */
const maxSegmentPayload = 1024;

/** Some hardware treats STag 0 specially; at no bytes any other will do (siw's own RTR uses 1). */
const anyStag = 1;

type Found<O extends Opcode> = Extract<Fpdu, { opcode: O }>;

/** {@link Peer} on a TCP socket of this process. */
export class StrictPeer implements Peer {
  readonly localAddress: Address;
  readonly #server: Server | null;
  readonly #connection: MpaConnection;
  #sends = 0;
  #reads = 0;

  /** Responder: accepts one TCP connection; port 0, the default, picks a free one. */
  static async listen({ host, port = 0 }: { host: string; port?: number }): Promise<StrictPeer> {
    const server = createServer({ noDelay: true });
    const connection = new MpaConnection('responder');
    server.once('connection', (socket) => {
      server.close();
      connection.attach(socket);
    });
    server.listen({ host, port });
    await once(server, 'listening');
    return new StrictPeer(server.address() as AddressInfo, connection, server);
  }

  /** Initiator: opens the TCP connection and sends nothing yet. */
  static async connect(to: Address & { localAddress?: string }): Promise<StrictPeer> {
    const socket = connect({ ...to, noDelay: true });
    await once(socket, 'connect');
    const connection = new MpaConnection('initiator');
    connection.attach(socket);
    return new StrictPeer(socket.address() as AddressInfo, connection, null);
  }

  private constructor({ address, port }: AddressInfo, connection: MpaConnection, server: Server | null) {
    this.localAddress = { host: address, port };
    this.#connection = connection;
    this.#server = server;
  }

  async sendRequest(options: RequestOptions = {}): Promise<void> {
    const plain = { peerToPeer: false, sendRtr: false, writeRtr: false, readRtr: false, ird: 1, ord: 1 };
    const enhanced = options.enhanced === null ? null : { ...plain, ...options.enhanced };
    await this.#connection.sendRequest({
      kind: 'request',
      markers: false,
      crc: options.crc ?? false,
      reject: false,
      revision: enhanced === null ? 1 : 2,
      enhanced,
      privateData: options.privateData ?? new Uint8Array(),
    });
  }

  async receiveReply(wait: Wait = {}): Promise<TimedFrame> {
    return await this.#inbox.frame('an MPA reply', wait);
  }

  async receiveRequest(wait: Wait = {}): Promise<TimedFrame> {
    return await this.#inbox.frame('an MPA request', wait);
  }

  async sendReply(options: ReplyOptions = {}): Promise<MpaFrame> {
    return await this.#connection.sendReply((request) => ({
      kind: 'reply',
      markers: false,
      crc: options.crc ?? request.crc,
      reject: options.reject ?? false,
      revision: request.revision,
      enhanced: request.enhanced && { ...answerEnhancedSetup(request.enhanced), ...options.enhanced },
      privateData: options.privateData ?? new Uint8Array(),
    }));
  }

  async nextFpdu(wait: Wait = {}): Promise<Fpdu> {
    return await this.#inbox.fpdu('an FPDU', wait);
  }

  async expectReadRequest0(wait: Wait = {}): Promise<Found<'read-request'>> {
    return await this.#expect('read-request', wait, (request) => request.size === 0, 'a 0-byte Read Request');
  }

  async expectReadResponse0(wait: Wait = {}): Promise<Found<'read-response'>> {
    return await this.#expect('read-response', wait, isEmpty, 'a 0-byte Read Response');
  }

  async expectWrite0(wait: Wait = {}): Promise<Found<'write'>> {
    return await this.#expect('write', wait, isEmpty, 'a 0-byte Write');
  }

  async expectSend(wait: Wait = {}): Promise<Send & { at: number }> {
    const parts: Uint8Array[] = [];
    for (;;) {
      const segment = await this.#expect('send', wait, () => true, 'a Send');
      parts.push(segment.payload);
      if (segment.last)
        return { ...segment, messageOffset: 0, payload: new Uint8Array(Buffer.concat(parts)) };
    }
  }

  async expectTerminate(wait: Wait = {}): Promise<Found<'terminate'>> {
    return await this.#expect('terminate', wait, () => true, 'a Terminate');
  }

  async expectSilence(duration: number): Promise<void> {
    await this.#inbox.silence(duration);
  }

  async expectEnd(wait: Wait = {}): Promise<void> {
    await this.#inbox.end(wait);
  }

  async send(payload: Uint8Array): Promise<void> {
    const msn = ++this.#sends;
    let messageOffset = 0;
    do {
      const part = payload.subarray(messageOffset, messageOffset + maxSegmentPayload);
      const last = messageOffset + part.length === payload.length;
      await this.#connection.sendSegment({
        opcode: 'send',
        last,
        msn,
        messageOffset,
        solicited: false,
        invalidate: null,
        payload: part,
      });
      messageOffset += part.length;
    } while (messageOffset < payload.length);
  }

  async sendReadRequest0(): Promise<void> {
    const request: ReadRequest = {
      opcode: 'read-request',
      last: true,
      msn: ++this.#reads,
      messageOffset: 0,
      sinkStag: anyStag,
      sinkOffset: 0n,
      size: 0,
      sourceStag: anyStag,
      sourceOffset: 0n,
    };
    await this.#connection.sendSegment(request);
  }

  async sendReadResponse0(request: ReadRequest): Promise<void> {
    if (request.size !== 0) throw new Error(`no memory to serve ${request.size} bytes from`);
    await this.#connection.sendSegment({
      opcode: 'read-response',
      last: true,
      stag: request.sinkStag,
      taggedOffset: request.sinkOffset,
      payload: new Uint8Array(),
    });
  }

  async sendWrite0(): Promise<void> {
    await this.#connection.sendSegment({
      opcode: 'write',
      last: true,
      stag: anyStag,
      taggedOffset: 0n,
      payload: new Uint8Array(),
    });
  }

  async sendTerminate({ layer = 0, type = 0, code = 0 }: TerminateOptions = {}): Promise<void> {
    const control = { layer, type, code, payload: new Uint8Array() };
    await this.#connection.sendSegment({
      opcode: 'terminate',
      last: true,
      msn: 1,
      messageOffset: 0,
      ...control,
    });
  }

  async history(): Promise<string> {
    return this.#inbox.history.toString();
  }

  async close(): Promise<void> {
    this.#server?.close();
    await this.#connection.close();
  }

  get #inbox() {
    return this.#connection.inbox;
  }

  async #expect<O extends Opcode>(
    opcode: O,
    wait: Wait,
    fits: (fpdu: Found<O>) => boolean,
    what: string,
  ): Promise<Found<O>> {
    const fpdu = await this.#inbox.fpdu(what, wait);
    if (hasOpcode(fpdu, opcode) && fits(fpdu)) return fpdu;
    throw this.#inbox.failure(`${what} was due, but there is ${describeSegment(fpdu)}`);
  }
}

function hasOpcode<O extends Opcode>(fpdu: Fpdu, opcode: O): fpdu is Found<O> {
  return fpdu.opcode === opcode;
}

function isEmpty(segment: { payload: Uint8Array }): boolean {
  return segment.payload.length === 0;
}
