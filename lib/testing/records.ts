import type { NativeRings, RecordLayout } from '../binding/native.js';

const recordSize = 64;
const requestRecords = 1024;
export const completionRecords = 256;

/** As native/ring/records.h lays them out. */
export const layout: RecordLayout = {
  workRequest: {
    size: recordSize,
    queuePair: 0,
    opcode: 4,
    flags: 5,
    sgeCount: 6,
    slot: 8,
    generation: 12,
    region: 16,
    length: 20,
    offset: 24,
    remoteAddress: 32,
    rkey: 40,
    immediate: 44,
    compareAdd: 48,
    swap: 56,
  },
  workCompletion: {
    size: recordSize,
    slot: 0,
    generation: 4,
    status: 8,
    opcode: 9,
    flags: 10,
    byteLength: 12,
    queuePair: 16,
    vendorError: 20,
    immediate: 24,
    sourceQp: 28,
    sourceLid: 32,
    serviceLevel: 34,
    pathBits: 35,
    pkeyIndex: 36,
    timestamp: 40,
    wallclock: 48,
  },
  control: {
    size: recordSize,
    requestHead: 0,
    requestTail: 4,
    inCallback: 8,
    completionsConsumed: 12,
    completionsInUse: 16,
  },
};

export interface GatherElement {
  readonly region: number;
  readonly offset: number;
  readonly length: number;
}

/** What a program has submitted. */
export interface WorkRequest {
  readonly queuePair: number;
  readonly opcode: number;
  readonly flags: number;
  readonly slot: number;
  readonly generation: number;
  readonly elements: readonly GatherElement[];
  readonly remoteAddress: bigint;
  readonly rkey: number;
}

/** What has become of a work request. */
export interface Completion {
  readonly slot: number;
  readonly generation: number;
  readonly status: number;
  readonly opcode: number;
  readonly byteLength: number;
  readonly queuePair: number;
  readonly vendorError: number;
}

/** The addon's side of the shared records. */
export class Records {
  readonly rings: NativeRings = {
    requests: new ArrayBuffer(requestRecords * recordSize),
    completions: new ArrayBuffer(completionRecords * recordSize),
    control: new ArrayBuffer(recordSize),
  };
  readonly #requests = new DataView(this.rings.requests);
  readonly #completions = new DataView(this.rings.completions);
  readonly #control = new DataView(this.rings.control);

  /** Takes what was submitted since the last time. */
  takeRequests(): WorkRequest[] {
    const { requestHead, requestTail } = layout.control;
    const head = this.#control.getUint32(requestHead, true);
    let tail = this.#control.getUint32(requestTail, true);
    const requests: WorkRequest[] = [];
    while (tail !== head) {
      const [request, records] = this.#request(tail);
      requests.push(request);
      tail = (tail + records) >>> 0;
    }
    this.#control.setUint32(requestTail, tail, true);
    return requests;
  }

  #request(index: number): [request: WorkRequest, records: number] {
    const at = layout.workRequest;
    const base = (index % requestRecords) * recordSize;
    const u32 = (offset: number) => this.#requests.getUint32(base + offset, true);
    const count = this.#requests.getUint8(base + at.sgeCount);
    const elements: GatherElement[] =
      count === 0
        ? []
        : [
            {
              region: u32(at.region),
              length: u32(at.length),
              offset: Number(this.#requests.getBigUint64(base + at.offset, true)),
            },
          ];
    for (let i = 1; i < count; i++) elements.push(this.#continuation(index + 1, i - 1));
    const request = {
      queuePair: u32(at.queuePair),
      opcode: this.#requests.getUint8(base + at.opcode),
      flags: this.#requests.getUint8(base + at.flags),
      slot: u32(at.slot),
      generation: u32(at.generation),
      elements,
      remoteAddress: this.#requests.getBigUint64(base + at.remoteAddress, true),
      rkey: u32(at.rkey),
    };
    return [request, 1 + Math.ceil(Math.max(count - 1, 0) / 4)];
  }

  #continuation(first: number, number: number): GatherElement {
    const base = ((first + (number >> 2)) % requestRecords) * recordSize + (number & 3) * 16;
    return {
      region: this.#requests.getUint32(base, true),
      length: this.#requests.getUint32(base + 4, true),
      offset: Number(this.#requests.getBigUint64(base + 8, true)),
    };
  }

  writeCompletion(index: number, completion: Completion): void {
    const at = layout.workCompletion;
    const base = index * recordSize;
    const view = this.#completions;
    view.setUint32(base + at.slot, completion.slot, true);
    view.setUint32(base + at.generation, completion.generation, true);
    view.setUint8(base + at.status, completion.status);
    view.setUint8(base + at.opcode, completion.opcode);
    view.setUint8(base + at.flags, 0);
    view.setUint32(base + at.byteLength, completion.byteLength, true);
    view.setUint32(base + at.queuePair, completion.queuePair, true);
    view.setUint32(base + at.vendorError, completion.vendorError, true);
    view.setUint32(base + at.immediate, 0, true);
    view.setUint32(base + at.sourceQp, 0, true);
  }

  /** While it is true, what is submitted is posted when the callback returns. */
  set inCallback(inside: boolean) {
    this.#control.setUint32(layout.control.inCallback, Number(inside), true);
  }

  /** Completions of the running batch that their handlers have had. */
  get consumed(): number {
    return this.#control.getUint32(layout.control.completionsConsumed, true);
  }

  /** Before a batch, and behind one whose handler threw. */
  resetCompletions(): void {
    this.#control.setUint32(layout.control.completionsConsumed, 0, true);
    this.#control.setUint32(layout.control.completionsInUse, 0, true);
  }
}
