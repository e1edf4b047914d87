import type { Access, MemoryRegion, ProtectionDomain } from '../verbs/index.js';

/** A piece of registered memory that holds the data of one work request. */
export interface StagingBuffer {
  readonly bytes: Buffer;
  /** Handle of the region. */
  readonly region: number;
  readonly offset: number;
  readonly sizeClass: number;
}

const smallestClass = 6;

/** Beside a power of two, so that a message of 8 KiB and its prefix do not take 16. */
const margin = 64;

const slabLength = 256 * 1024;

/**
 * Registered memory for data that is not: cut into buffers of a few sizes, grown when all of one size are in use,
 * and shared by the connections of a protection domain, so that an idle connection costs nothing.
 */
export class StagingPool {
  readonly #pd: ProtectionDomain;
  readonly #access: readonly Access[];
  readonly #free: StagingBuffer[][] = [];

  constructor(pd: ProtectionDomain, access: readonly Access[]) {
    this.#pd = pd;
    this.#access = access;
  }

  /** A buffer of at least `length` bytes. Throws `ENOMEM` when no more memory can be registered. */
  take(length: number): StagingBuffer {
    const sizeClass = Math.max(smallestClass, 32 - Math.clz32(Math.max(length - margin, 1) - 1));
    let free = this.#free[sizeClass];
    if (free === undefined) {
      free = [];
      this.#free[sizeClass] = free;
    }
    if (free.length === 0) this.#grow(free, sizeClass);
    return free.pop()!;
  }

  give(buffer: StagingBuffer): void {
    this.#free[buffer.sizeClass]!.push(buffer);
  }

  #grow(free: StagingBuffer[], sizeClass: number): void {
    const size = 2 ** sizeClass + margin;
    const count = Math.max(1, Math.floor(slabLength / size));
    const slab: MemoryRegion = this.#pd.allocateSync(size * count, { access: this.#access });
    const { buffer, byteOffset } = slab.bytes;
    for (let offset = 0; offset < size * count; offset += size) {
      const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset + offset, size);
      free.push({ bytes, region: slab.handle, offset, sizeClass });
    }
  }
}
