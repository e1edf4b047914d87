import { constants } from 'node:os';
import type { NativeHooks } from '../binding/native.js';
import { opcodes, requestFlags } from '../verbs/opcode.js';
import { postFailed, statusOf } from '../verbs/status.js';
import type { Failures } from './failures.js';
import type { Objects } from './objects.js';
import { queuePairStates, type StandInCompletionQueue, StandInQueuePair, StandInRegion } from './queues.js';
import {
  type Completion,
  completionRecords,
  type GatherElement,
  type Records,
  type WorkRequest,
} from './records.js';
import type { StandInWire } from './wire.js';

const { EINVAL, ENOMEM, ENOTCONN, ENOTSUP, EBADF } = constants.errno;
const success = 0;
const flushed = statusOf('WR_FLUSH_ERR')!;
const badLength = statusOf('LOC_LEN_ERR')!;
const noAccess = statusOf('REM_ACCESS_ERR')!;

const remoteAccess = { [opcodes.write]: 2, [opcodes.read]: 4 } as const;

function lengthOf(elements: readonly GatherElement[]): number {
  return elements.reduce((sum, { length }) => sum + length, 0);
}

/** Carries work requests out: what a device does. Nothing of it happens within the call that posted the request. */
export class DataPath {
  readonly #objects: Objects;
  readonly #records: Records;
  readonly #wire: StandInWire;
  readonly #failures: Failures;
  readonly #iwarp: boolean;
  /** Ends a connection as a device does that was violated. */
  readonly #terminate: (queuePair: StandInQueuePair) => void;
  #hooks: Pick<NativeHooks, 'onCompletions'> = { onCompletions: () => {} };
  #delivering = false;

  constructor(
    objects: Objects,
    records: Records,
    wire: StandInWire,
    failures: Failures,
    iwarp: boolean,
    terminate: (queuePair: StandInQueuePair) => void,
  ) {
    this.#objects = objects;
    this.#records = records;
    this.#wire = wire;
    this.#failures = failures;
    this.#iwarp = iwarp;
    this.#terminate = terminate;
  }

  start(hooks: NativeHooks): void {
    this.#hooks = hooks;
  }

  /** Posts what was submitted. */
  flush(): void {
    for (const request of this.#records.takeRequests()) {
      const queuePair = this.#objects.find(StandInQueuePair, request.queuePair);
      // Nobody is left who could hear of it: its queues are gone with it.
      if (queuePair !== undefined) this.#post(queuePair, request);
    }
  }

  #post(queuePair: StandInQueuePair, request: WorkRequest): void {
    const refusal = this.#refusal(queuePair, request);
    if (refusal !== 0) {
      this.#complete(queuePair, request, postFailed, 0, refusal);
      return;
    }
    this.#count(request, 1);
    const receiving = request.opcode === opcodes.receive;
    (receiving ? queuePair.receives : queuePair.sends).push(request);
    if (queuePair.state === queuePairStates.error) this.fail(queuePair);
    // A receive may be what the peer's next Send has waited for.
    else if (receiving && queuePair.peer !== undefined) this.#pumpLater(queuePair.peer);
    else if (!receiving) this.#pumpLater(queuePair);
  }

  /** The errno by which a post is refused before the device sees it, or 0. */
  #refusal(queuePair: StandInQueuePair, { opcode, elements }: WorkRequest): number {
    for (const { region: handle, offset, length } of elements) {
      const region = this.#objects.find(StandInRegion, handle);
      if (region === undefined || region.domain !== queuePair.domain) return EBADF;
      if (offset + length > region.bytes.length) return EINVAL;
    }
    if (opcode === opcodes.receive) return queuePair.receives.length < queuePair.maxReceives ? 0 : ENOMEM;
    if (opcode !== opcodes.send && opcode !== opcodes.write && opcode !== opcodes.read) return ENOTSUP;
    if (queuePair.state === queuePairStates.reset) return ENOTCONN;
    return queuePair.sends.length < queuePair.maxSends ? 0 : ENOMEM;
  }

  /** Each region knows how many requests use it. */
  #count({ elements }: WorkRequest, change: 1 | -1): void {
    for (const { region } of elements) {
      const found = this.#objects.find(StandInRegion, region);
      if (found !== undefined) found.inFlight += change;
    }
  }

  #pumpLater(queuePair: StandInQueuePair): void {
    if (queuePair.pumping) return;
    queuePair.pumping = true;
    this.#wire.carry(() => {
      queuePair.pumping = false;
      while (queuePair.state === queuePairStates.ready && this.#carryOut(queuePair)) {}
    });
  }

  /** Carries the oldest request out. @returns false when there is none, or it has to wait */
  #carryOut(queuePair: StandInQueuePair): boolean {
    const [request] = queuePair.sends;
    const { peer } = queuePair;
    if (request === undefined || peer === undefined) return false;
    const failure = this.#failures.takeRequest(request.opcode);
    if (failure !== undefined) {
      this.#finish(queuePair, request, failure);
      this.#terminate(queuePair);
      return false;
    }
    if (request.opcode === opcodes.send) return this.#send(queuePair, request, peer);
    this.#reachMemory(queuePair, request, peer);
    return true;
  }

  #send(queuePair: StandInQueuePair, request: WorkRequest, peer: StandInQueuePair): boolean {
    const receive = peer.receives[0];
    // RNR: InfiniBand and RoCE wait. iWARP has no such thing, and the sender never hears of it.
    if (receive === undefined && !this.#iwarp) return false;
    const data = this.#gather(request.elements);
    this.#finish(queuePair, request, success);
    const fits = receive !== undefined && data.length <= lengthOf(receive.elements);
    if (receive !== undefined) {
      peer.receives.shift();
      if (fits) this.#scatter(receive.elements, data);
      this.#count(receive, -1);
      this.#complete(peer, receive, fits ? success : badLength, fits ? data.length : 0);
    }
    if (!fits) this.#terminate(queuePair);
    return fits;
  }

  #reachMemory(queuePair: StandInQueuePair, request: WorkRequest, peer: StandInQueuePair): void {
    const { opcode, elements } = request;
    const length = lengthOf(elements);
    const memory = this.#remoteBytes(request, peer, length);
    if (memory === undefined) {
      // On iWARP the initiator of a Write has had its success by then, and that of a Read waits for ever.
      const status = this.#iwarp ? (opcode === opcodes.write ? success : flushed) : noAccess;
      this.#finish(queuePair, request, status);
      this.#terminate(queuePair);
      return;
    }
    if (opcode === opcodes.write) memory.set(this.#gather(elements));
    else this.#scatter(elements, memory);
    this.#finish(queuePair, request, success, opcode === opcodes.read ? length : 0);
  }

  /** The peer's memory that a Write or Read names, if it was granted. Nothing is checked where nothing is moved. */
  #remoteBytes(
    { opcode, rkey, remoteAddress }: WorkRequest,
    peer: StandInQueuePair,
    length: number,
  ): Uint8Array | undefined {
    if (length === 0) return new Uint8Array(0);
    const needed = remoteAccess[opcode as keyof typeof remoteAccess];
    for (const region of this.#objects.all(StandInRegion)) {
      if (region.key !== rkey || region.domain !== peer.domain || (region.access & needed) === 0) continue;
      const offset = Number(remoteAddress - region.address);
      if (offset >= 0 && offset + length <= region.bytes.length)
        return region.bytes.subarray(offset, offset + length);
    }
    return undefined;
  }

  #bytesOf({ region, offset, length }: GatherElement): Uint8Array {
    const bytes = this.#objects.find(StandInRegion, region)?.bytes ?? new Uint8Array(0);
    return bytes.subarray(offset, offset + length);
  }

  #gather(elements: readonly GatherElement[]): Uint8Array {
    return Buffer.concat(elements.map((element) => this.#bytesOf(element)));
  }

  #scatter(elements: readonly GatherElement[], data: Uint8Array): void {
    let from = 0;
    for (const element of elements) {
      const target = this.#bytesOf(element);
      const part = data.subarray(from, from + target.length);
      target.set(part);
      from += part.length;
    }
  }

  /** The oldest request of the send queue is over. */
  #finish(queuePair: StandInQueuePair, request: WorkRequest, status: number, byteLength = 0): void {
    queuePair.sends.shift();
    this.#count(request, -1);
    if (status !== success || (request.flags & requestFlags.signaled) !== 0)
      this.#complete(queuePair, request, status, byteLength);
  }

  /** To the error state: everything that is posted comes back flushed. */
  fail(queuePair: StandInQueuePair): void {
    queuePair.state = queuePairStates.error;
    const { sends, receives } = queuePair;
    queuePair.sends = [];
    queuePair.receives = [];
    for (const request of [...sends, ...receives]) {
      this.#count(request, -1);
      this.#complete(queuePair, request, flushed);
    }
  }

  #complete(
    queuePair: StandInQueuePair,
    { slot, generation, opcode }: WorkRequest,
    status: number,
    byteLength = 0,
    vendorError = 0,
  ): void {
    const queue = opcode === opcodes.receive ? queuePair.receiveQueue : queuePair.sendQueue;
    const completion: Completion = {
      ...{ slot, generation, opcode, status, byteLength, vendorError },
      queuePair: queuePair.handle,
    };
    queue.pending.push(completion);
    if (!queue.watched || queue.scheduled) return;
    queue.scheduled = true;
    setImmediate(() => {
      queue.scheduled = false;
      this.deliver(queue, queue.entries);
    });
  }

  /** Delivers completions, up to `limit`. @returns how many; none within a callback of its own */
  deliver(queue: StandInCompletionQueue, limit: number): number {
    if (this.#delivering) return 0;
    let delivered = 0;
    while (delivered < limit && queue.pending.length > 0) {
      const batch = queue.pending.splice(0, Math.min(limit - delivered, completionRecords));
      delivered += batch.length;
      this.#deliverBatch(queue, batch);
    }
    return delivered;
  }

  #deliverBatch(queue: StandInCompletionQueue, batch: readonly Completion[]): void {
    for (const [index, completion] of batch.entries()) this.#records.writeCompletion(index, completion);
    this.#records.resetCompletions();
    this.#records.inCallback = true;
    this.#delivering = true;
    try {
      this.#hooks.onCompletions(queue.handle, 0, batch.length);
    } catch (error) {
      // As with the addon: what was not consumed comes again, and the error is nobody's but the program's.
      queue.pending.unshift(...batch.slice(this.#records.consumed));
      process.nextTick(() => {
        throw error;
      });
    } finally {
      this.#delivering = false;
      this.#records.inCallback = false;
      this.#records.resetCompletions();
    }
    this.flush();
  }
}
