import { constants } from 'node:os';
import type { NativeMemoryRegion } from '../binding/memory.js';
import type { Native, NativeHooks } from '../binding/native.js';
import type {
  NativeDeviceAttributes,
  NativeDeviceSummary,
  NativeExtendedDeviceAttributes,
  NativePortAttributes,
  NativeQueuePair,
  NativeQueuePairAttributes,
  NativeQueuePairOptions,
} from '../binding/verbs.js';
import type { DataPath } from './data-path.js';
import { CmEndpoint } from './endpoint.js';
import type { Failures } from './failures.js';
import type { Objects } from './objects.js';
import {
  queuePairStates,
  StandInCompletionQueue,
  StandInDomain,
  StandInQueuePair,
  StandInRegion,
} from './queues.js';

const { EBUSY, ENODEV } = constants.errno;

export const deviceName = 'standin0';
const pageSize = 4096n;

/** An opened device, and a completion channel: nothing but a handle. */
class OpenDevice {}
class StandInCompletionChannel {}

type DeviceFunctions = Pick<
  Native,
  | 'objectCounts'
  | 'listDevices'
  | 'openDevice'
  | 'describeDevice'
  | 'queryDevice'
  | 'queryDeviceExtended'
  | 'queryCompletionFields'
  | 'queryPort'
  | 'closeDevice'
  | 'allocatePd'
  | 'deallocatePd'
  | 'createCompletionChannel'
  | 'destroyCompletionChannel'
  | 'createCompletionQueue'
  | 'setCompletionQueueWaiting'
  | 'pollCompletionQueue'
  | 'destroyCompletionQueue'
  | 'referenceCompletionQueue'
  | 'createQueuePair'
  | 'modifyQueuePair'
  | 'queuePairInFlight'
  | 'destroyQueuePair'
  | 'allocateMemory'
  | 'allocateMemoryAsync'
  | 'registerMemory'
  | 'deregisterMemory'
  | 'memoryInFlight'
>;

/** What libibverbs does, for the one device that there is. */
export class StandInDevice implements DeviceFunctions {
  readonly #objects: Objects;
  readonly #failures: Failures;
  readonly #iwarp: boolean;
  readonly #data: DataPath;
  #hooks: NativeHooks | undefined;
  #nextAddress = pageSize;
  #nextKey = 0x100;
  #opened: number | undefined;

  constructor(objects: Objects, failures: Failures, iwarp: boolean, data: DataPath) {
    this.#objects = objects;
    this.#failures = failures;
    this.#iwarp = iwarp;
    this.#data = data;
  }

  start(hooks: NativeHooks): void {
    this.#hooks = hooks;
  }

  objectCounts(): Record<string, number> {
    return this.#objects.counts();
  }

  listDevices(): NativeDeviceSummary[] {
    return [this.describeDevice()];
  }

  openDevice(name: string): number {
    if (name !== deviceName) throw this.#hooks!.createError(ENODEV, 'ibv_open_device');
    return this.#objects.add(() => new OpenDevice());
  }

  /** The device of whatever id that has one. */
  deviceOfId(id: number): number {
    if (!this.#objects.get(CmEndpoint, id).bound) return 0;
    this.#opened ??= this.openDevice(deviceName);
    return this.#opened;
  }

  describeDevice(): NativeDeviceSummary {
    const transport = this.#iwarp ? 1 : 0;
    return {
      name: deviceName,
      driver: 'standin',
      guid: '0000000000000000',
      nodeType: this.#iwarp ? 4 : 1,
      transport,
    };
  }

  queryDevice(): NativeDeviceAttributes {
    return {
      ...{ firmwareVersion: '', maxMrSize: 2n ** 40n, vendorId: 0, vendorPartId: 0, hardwareVersion: 0 },
      ...{ maxQp: 1 << 16, maxQpWr: 1 << 15, deviceCapFlags: 0, maxSge: 6, maxSgeRd: 1, maxCq: 1 << 16 },
      ...{ maxCqe: 1 << 20, maxMr: 1 << 16, maxPd: 1 << 16, maxQpRdAtom: 128, maxQpInitRdAtom: 128 },
      ...{ atomicCap: 0, maxMw: 0, maxMcastGrp: 0, maxAh: 0, maxSrq: 0, maxSrqWr: 0, maxSrqSge: 0 },
      ...{ maxPkeys: 1, physPortCnt: 1 },
    };
  }

  queryDeviceExtended(): NativeExtendedDeviceAttributes {
    return {
      ...{ completionTimestampMask: 0n, coreClock: 0n, deviceCapFlagsExtended: 0n, onDemandPagingCaps: 0n },
      ...{ maxDeviceMemorySize: 0n, maxTso: 0, maxWorkQueuesReceive: 0, rawPacketCaps: 0 },
      ...{ maxTagMatchingSrqs: 0, maxCqModerationCount: 0, maxCqModerationPeriod: 0 },
      ...{ pciAtomicFetchAdd: 0, pciAtomicSwap: 0, pciAtomicCompareSwap: 0 },
    };
  }

  queryCompletionFields(): number {
    return 0;
  }

  queryPort(): NativePortAttributes {
    return {
      ...{ state: 4, maxMtu: 5, activeMtu: 5, gidTableLength: 1, portCapFlags: 0, maxMessageSize: 2 ** 31 },
      ...{ pkeyTableLength: 1, lid: 0, activeWidth: 0, activeSpeed: 0, physicalState: 5, linkLayer: 2 },
      ...{ badPkeyCounter: 0, qkeyViolationCounter: 0, smLid: 0, lmc: 0, maxVlNumber: 0, smSl: 0 },
      ...{ subnetTimeout: 0, initTypeReply: 0, flags: 0, portCapFlags2: 0 },
    };
  }

  closeDevice(device: number): void {
    this.#objects.remove(device);
    if (device === this.#opened) this.#opened = undefined;
  }

  allocatePd(): number {
    return this.#objects.add(() => new StandInDomain());
  }

  deallocatePd(pd: number): void {
    if (this.#objects.get(StandInDomain, pd).users > 0)
      throw this.#hooks!.createError(EBUSY, 'ibv_dealloc_pd');
    this.#objects.remove(pd);
  }

  createCompletionChannel(): number {
    return this.#objects.add(() => new StandInCompletionChannel());
  }

  destroyCompletionChannel(channel: number): void {
    this.#objects.remove(channel);
  }

  createCompletionQueue(_device: number, entries: number): { handle: number; entries: number } {
    return { entries, handle: this.#objects.add((handle) => new StandInCompletionQueue(handle, entries)) };
  }

  setCompletionQueueWaiting(cq: number, waiting: number): void {
    this.#objects.get(StandInCompletionQueue, cq).watched = waiting !== 0;
  }

  pollCompletionQueue(cq: number, limit: number): number {
    return this.#data.deliver(this.#objects.get(StandInCompletionQueue, cq), limit);
  }

  async destroyCompletionQueue(cq: number): Promise<void> {
    this.#objects.remove(cq);
  }

  /** Only event channels keep the process alive: what is to complete is on its way already. */
  referenceCompletionQueue(): void {}

  createQueuePair(options: NativeQueuePairOptions): NativeQueuePair {
    const { pd, sendCq, receiveCq, cmId, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineData } =
      options;
    const domain = this.#objects.get(StandInDomain, pd);
    const send = this.#objects.get(StandInCompletionQueue, sendCq);
    const receive = this.#objects.get(StandInCompletionQueue, receiveCq);
    const endpoint = cmId === 0 ? undefined : this.#objects.get(CmEndpoint, cmId);
    const limits = { sends: maxSendWr, receives: maxReceiveWr };
    const make = (handle: number) =>
      new StandInQueuePair(handle, domain, { send, receive }, limits, endpoint);
    const handle = this.#objects.add(make);
    domain.users += 1;
    return { handle, number: handle, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineData };
  }

  modifyQueuePair(qp: number, { state }: NativeQueuePairAttributes): void {
    const queuePair = this.#objects.get(StandInQueuePair, qp);
    if (state === queuePairStates.error) this.#data.fail(queuePair);
    else if (state !== undefined) queuePair.state = state;
  }

  queuePairInFlight(qp: number): [number, number] {
    const { sends, receives } = this.#objects.get(StandInQueuePair, qp);
    return [sends.length, receives.length];
  }

  async destroyQueuePair(qp: number): Promise<void> {
    const queuePair = this.#objects.get(StandInQueuePair, qp);
    this.#data.fail(queuePair);
    // What was flushed is delivered before it is gone.
    for (const queue of new Set([queuePair.sendQueue, queuePair.receiveQueue]))
      while (queue.watched && queue.pending.length > 0) {
        this.#data.deliver(queue, queue.entries);
        await new Promise(setImmediate);
      }
    if (queuePair.endpoint !== undefined) queuePair.endpoint.queuePair = undefined;
    queuePair.domain.users -= 1;
    this.#objects.remove(qp);
  }

  allocateMemory(pd: number, length: number, access: number): NativeMemoryRegion {
    const buffer = new ArrayBuffer(length);
    return { ...this.#register(pd, new Uint8Array(buffer), access), buffer };
  }

  async allocateMemoryAsync(pd: number, length: number, access: number): Promise<NativeMemoryRegion> {
    return this.allocateMemory(pd, length, access);
  }

  async registerMemory(pd: number, view: Uint8Array, access: number): Promise<NativeMemoryRegion> {
    return this.#register(pd, view, access);
  }

  #register(pd: number, bytes: Uint8Array, access: number): NativeMemoryRegion {
    const errno = this.#failures.takeCall('allocate');
    if (errno !== undefined) throw this.#hooks!.createError(errno, 'ibv_reg_mr');
    const domain = this.#objects.get(StandInDomain, pd);
    const address = this.#nextAddress;
    // A page between two regions belongs to neither.
    this.#nextAddress += (BigInt(bytes.length) / pageSize + 2n) * pageSize;
    const key = this.#nextKey++;
    const handle = this.#objects.add(() => new StandInRegion(domain, bytes, access, address, key));
    domain.users += 1;
    return { handle, buffer: null, lkey: key, rkey: key, address, length: bytes.length };
  }

  async deregisterMemory(handle: number): Promise<void> {
    const region = this.#objects.get(StandInRegion, handle);
    if (region.inFlight > 0) throw this.#hooks!.createError(EBUSY, 'ibv_dereg_mr');
    region.domain.users -= 1;
    this.#objects.remove(handle);
  }

  memoryInFlight(handle: number): number {
    return this.#objects.get(StandInRegion, handle).inFlight;
  }
}
