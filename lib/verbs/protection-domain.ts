import { constants } from 'node:buffer';
import { markAsUntransferable } from 'node:worker_threads';
import { useBinding } from '../binding/addon.js';
import type { NativeMemoryRegion } from '../binding/memory.js';
import { NativeObject } from '../binding/native-object.js';
import {
  closedError,
  invalidArgumentType,
  invalidArgumentValue,
  requireInteger,
  requireOptions,
} from '../errors.js';
import { Device } from './device.js';
import { type Access, accessMask, MemoryRegion } from './memory-region.js';

/** How memory is allocated and registered. */
export interface MemoryOptions {
  /** What peers may do with it; default: nothing. */
  access?: readonly Access[];
  /** Ask for 2 MiB pages; default false. Falls back to ordinary pages where none are free. */
  hugePages?: boolean;
}

/** `ibv_pd`: queue pairs reach the memory regions of their own domain and no others. */
export class ProtectionDomain extends NativeObject {
  readonly device: Device;
  readonly #registrations = new Set<Promise<NativeMemoryRegion>>();

  /** `ibv_alloc_pd(3)`. */
  constructor(device: Device) {
    if (!(device instanceof Device)) throw invalidArgumentType('device', 'a Device', device);
    const { native } = useBinding();
    super('ProtectionDomain', 3, native.allocatePd(device.handle), (handle) => native.deallocatePd(handle), [
      device,
    ]);
    this.device = device;
  }

  #access(options: MemoryOptions): number {
    return accessMask(options.access === undefined ? [] : options.access, this.device.transport === 'iwarp');
  }

  /** Allocates page-aligned memory and registers it on this thread: for sizes up to some MiB. */
  allocateSync(length: number, options: MemoryOptions = {}): MemoryRegion {
    requireOptions('options', options);
    requireInteger('length', length, 1, constants.MAX_LENGTH);
    const { native } = useBinding();
    const huge = options.hugePages ?? false;
    const region = native.allocateMemory(this.handle, length, this.#access(options), huge);
    return new MemoryRegion(this, region, new Uint8Array(region.buffer!, 0, length), options.access ?? []);
  }

  /** Allocates page-aligned memory and registers it without blocking the event loop. */
  async allocate(length: number, options: MemoryOptions = {}): Promise<MemoryRegion> {
    requireOptions('options', options);
    requireInteger('length', length, 1, constants.MAX_LENGTH);
    const { native } = useBinding();
    const huge = options.hugePages ?? false;
    const region = await this.#registering(
      native.allocateMemoryAsync(this.handle, length, this.#access(options), huge),
    );
    return new MemoryRegion(this, region, new Uint8Array(region.buffer!, 0, length), options.access ?? []);
  }

  /** The domain is not deallocated before this has settled; a region that comes too late is let go. */
  async #registering(registration: Promise<NativeMemoryRegion>): Promise<NativeMemoryRegion> {
    const settled = registration.then(async (region) => {
      if (!this.closed) return region;
      await useBinding().native.deregisterMemory(region.handle);
      throw closedError('ProtectionDomain');
    });
    this.#registrations.add(settled);
    try {
      return await settled;
    } finally {
      this.#registrations.delete(settled);
    }
  }

  protected override beforeClose(): Promise<unknown> | undefined {
    return this.#registrations.size === 0 ? undefined : Promise.allSettled(this.#registrations);
  }

  /**
   * Registers existing memory in place: `ibv_reg_mr(3)`. The whole buffer behind a typed array becomes
   * untransferable; a resizable one is refused with a TypeError.
   */
  async register(
    memory: ArrayBuffer | SharedArrayBuffer | Uint8Array,
    options: MemoryOptions = {},
  ): Promise<MemoryRegion> {
    requireOptions('options', options);
    const view = memory instanceof Uint8Array ? memory : toView(memory);
    const buffer = view.buffer as (ArrayBuffer | SharedArrayBuffer) & {
      resizable?: boolean;
      growable?: boolean;
    };
    if (buffer.resizable === true || buffer.growable === true) {
      throw invalidArgumentValue('memory', memory, 'must not be resizable');
    }
    requireInteger('memory.byteLength', view.byteLength, 1, Number.MAX_SAFE_INTEGER);
    const { native } = useBinding();
    const access = this.#access(options);
    const pd = this.handle;
    // First: memory that is transferred while it is being registered would be freed under the device.
    if (buffer instanceof ArrayBuffer) markAsUntransferable(buffer);
    const region = await this.#registering(native.registerMemory(pd, view, access));
    return new MemoryRegion(this, region, view, options.access ?? []);
  }
}

function toView(memory: unknown): Uint8Array {
  if (!(memory instanceof ArrayBuffer) && !(memory instanceof SharedArrayBuffer)) {
    throw invalidArgumentType('memory', 'an ArrayBuffer, SharedArrayBuffer or Uint8Array', memory);
  }
  return new Uint8Array(memory);
}
