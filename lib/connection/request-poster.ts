import { invalidArgumentType, invalidArgumentValue, RdmaError } from '../errors.js';
import type { Request } from '../peer-to-peer/handshake.js';
import { opcodes, type RingSge, requestFlags, rings } from '../verbs/index.js';
import { findRegion } from '../verbs/memory-region.js';
import type { Domain } from './domain.js';
import { type FlowControl, messageKinds, prefixLength } from './flow-control.js';
import type { SendRequest } from './send-request.js';

/** What a connection gets to know when it is established. */
export interface SendTerms {
  /** Without it messages have no prefix. */
  readonly flow: FlowControl | undefined;
  readonly maxMessageSize: number;
  /** Whether both sides have the depth for RDMA Reads. */
  readonly canRead: boolean;
  /** For 0-byte requests. */
  readonly rkey: number;
}

/** Shorter data is copied sooner than the region is found that it may lie in. */
const shortestBorrowed = 256;

/** The most that is copied for a Write, or from a Read, of memory that is not registered. */
export const longestCopied = 2 ** 20;

export function tooLarge(length: number, limit: number, what: string): RdmaError {
  return new RdmaError('ERR_RDMA_MESSAGE_TOO_LARGE', `${length} bytes are more than ${what}, ${limit}`);
}

/** Brings the data of requests into registered memory, and the requests into the submission ring. */
export class RequestPoster {
  readonly #queuePair: number;
  readonly #domain: Domain;

  /** `queuePair`: its handle. */
  constructor(queuePair: number, domain: Domain) {
    this.#queuePair = queuePair;
    this.#domain = domain;
  }

  /** Borrows data that is registered, if it may, else copies it: then the caller can change it when this returns. */
  placeSource(request: SendRequest, data: Uint8Array, mayBorrow: boolean): void {
    if (mayBorrow && data.length >= shortestBorrowed) {
      const region = findRegion(this.#domain.pd, data);
      if (region !== undefined) {
        request.region = region;
        request.offset = data.byteOffset - region.bytes.byteOffset;
        return;
      }
    }
    requireCopyable(request);
    request.staging = this.#domain.sources.take(prefixLength + data.length);
    request.staging.bytes.set(data, prefixLength);
  }

  /** Finds the region of a Read's sink, or takes memory for it. Throws `ERR_RDMA_NOT_A_READ_SINK`. */
  placeSink(request: SendRequest): void {
    const { into, length } = request;
    if (into === undefined) {
      request.staging = this.#domain.sinks.take(prefixLength + length);
      return;
    }
    const region = findRegion(this.#domain.pd, into);
    if (region === undefined || !region.access.includes('read-sink')) {
      throw new RdmaError(
        'ERR_RDMA_NOT_A_READ_SINK',
        "An RDMA Read places its data in a region of the connection's protection domain with access 'read-sink': " +
          "connection.allocate(length, { access: ['read-sink'] })",
      );
    }
    request.region = region;
    request.offset = into.byteOffset - region.bytes.byteOffset;
  }

  /** Throws, before anything is on the wire, for what turned out to be impossible. */
  post(request: SendRequest, { flow, maxMessageSize, canRead }: SendTerms): void {
    const { opcode, copy, length } = request;
    if (opcode === opcodes.read) {
      if (!canRead) throw new RdmaError('ENOTSUP', 'The peer, or its device, serves no RDMA Reads');
      if (request.region === undefined && request.staging === undefined) this.placeSink(request);
    } else if (opcode === opcodes.send && length > maxMessageSize) {
      throw tooLarge(length, maxMessageSize, 'the largest message that the peer takes');
    }
    if (copy !== undefined) {
      this.placeSource(request, copy, false);
      request.copy = undefined;
    }
    if (flow !== undefined && opcode === opcodes.send) {
      this.#postPrefixed(request, flow);
    } else if (request.region !== undefined) {
      this.#submit(request, request.region.handle, request.offset, length);
    } else {
      const { region, offset } = request.staging!;
      this.#submit(request, region, offset + prefixLength, length);
    }
  }

  /** A 0-byte request of the handshake, or of keepalive. */
  postEmpty(request: SendRequest, kind: Request, rkey: number): void {
    if (kind === 'go') {
      request.opcode = opcodes.send;
    } else {
      request.opcode = kind === 'read' ? opcodes.read : opcodes.write;
      request.rkey = rkey;
    }
    // A real region even for nothing: siw reuses stale elements of a Read that has none.
    this.#submit(request, this.#domain.page.handle, 0, 0);
  }

  /** A message that consists of its prefix. */
  postControl(request: SendRequest, flow: FlowControl, kind: number): void {
    request.staging = this.#domain.sources.take(prefixLength);
    request.staging.bytes.writeUInt32BE(flow.prefix(kind), 0);
    this.#submit(request, request.staging.region, request.staging.offset, prefixLength);
  }

  giveBack(request: SendRequest): void {
    if (request.staging === undefined) return;
    const { sources, sinks } = this.#domain;
    (request.opcode === opcodes.read ? sinks : sources).give(request.staging);
  }

  #postPrefixed(request: SendRequest, flow: FlowControl): void {
    const { region, length, offset } = request;
    const borrowed = region === undefined ? undefined : [{ region: region.handle, offset, length }];
    request.staging ??= this.#domain.sources.take(prefixLength);
    const { staging } = request;
    staging.bytes.writeUInt32BE(flow.prefix(messageKinds.data), 0);
    const own = prefixLength + (borrowed === undefined ? length : 0);
    this.#submit(request, staging.region, staging.offset, own, borrowed);
  }

  #submit(
    request: SendRequest,
    region: number,
    offset: number,
    length: number,
    more?: readonly RingSge[],
  ): void {
    const { requests, slots } = rings();
    const slot = slots.acquire(request);
    request.posted = true;
    requests.submit(
      this.#queuePair,
      request.opcode,
      requestFlags.signaled,
      slot,
      slots.generation(slot),
      region,
      offset,
      length,
      request.remoteLow,
      request.remoteHigh,
      request.rkey,
      0,
      more,
    );
  }
}

export function requireCopyable({ opcode, length }: SendRequest): void {
  if (opcode === opcodes.write && length > longestCopied) {
    throw tooLarge(length, longestCopied, 'what can be written from outside of a region');
  }
}

export function requireData(data: unknown): Uint8Array {
  if (!(data instanceof Uint8Array)) throw invalidArgumentType('data', 'a Uint8Array', data);
  if (data.length === 0 && isDetached(data)) {
    throw invalidArgumentValue(
      'data',
      data,
      'has lost its buffer to another thread, or to structuredClone()',
    );
  }
  return data;
}

function isDetached(data: Uint8Array): boolean {
  try {
    data.subarray();
    return false;
  } catch {
    return true;
  }
}
