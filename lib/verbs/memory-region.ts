import { markAsUntransferable } from 'node:worker_threads';
import { useBinding } from '../binding/addon.js';
import type { NativeMemoryRegion } from '../binding/memory.js';
import { NativeObject } from '../binding/native-object.js';
import {
  invalidArgumentType,
  invalidArgumentValue,
  requireInteger,
  requireOneOf,
  systemError,
} from '../errors.js';
import type { ProtectionDomain } from './protection-domain.js';
import { RemoteMemory } from './remote-memory.js';
import { rings } from './rings.js';

const accessBits = {
  'remote-write': 2,
  'remote-read': 4,
  'remote-atomic': 8,
  'window-bind': 16,
} as const;

/**
 * What peers may do with a region. None is needed for sending and receiving. `read-sink`: data of an RDMA Read is
 * placed here; on iWARP this grants REMOTE_WRITE (RFC 5040 §5.3). `window-bind`: memory windows can be bound to it.
 */
export type Access = keyof typeof accessBits | 'read-sink';

const localWrite = 1;

export function accessMask(access: readonly Access[], iwarp: boolean): number {
  if (!Array.isArray(access)) throw invalidArgumentType('access', 'an array of access names', access);
  let mask = localWrite;
  for (const name of access) {
    if (name === 'read-sink') mask |= iwarp ? accessBits['remote-write'] : 0;
    else if (Object.hasOwn(accessBits, name)) mask |= accessBits[name as keyof typeof accessBits];
    else
      throw invalidArgumentValue(
        'access',
        name,
        'must name remote-write, remote-read, remote-atomic, window-bind or read-sink',
      );
  }
  return mask;
}

const windowAccess = ['remote-write', 'remote-read', 'remote-atomic'] as const;

/** What a memory window grants: what peers do, and nothing that is of the region itself. */
export function windowAccessMask(access: readonly (typeof windowAccess)[number][]): number {
  if (!Array.isArray(access)) throw invalidArgumentType('access', 'an array of access names', access);
  return access.reduce((mask, name) => mask | accessBits[requireOneOf('access', name, windowAccess)], 0);
}

/** The open regions by the buffer that they lie in. */
const regionsByBuffer = new WeakMap<ArrayBufferLike, MemoryRegion[]>();

/** The open region of a protection domain that these bytes lie in, if there is one. */
export function findRegion(pd: ProtectionDomain, bytes: Uint8Array): MemoryRegion | undefined {
  return regionsByBuffer.get(bytes.buffer)?.find((region) => {
    const start = bytes.byteOffset - region.bytes.byteOffset;
    return region.protectionDomain === pd && start >= 0 && start + bytes.length <= region.length;
  });
}

/** Registered memory: `ibv_mr`. */
export class MemoryRegion extends NativeObject {
  readonly protectionDomain: ProtectionDomain;
  /** The registered bytes. Its buffer can't be transferred to another thread. */
  readonly bytes: Uint8Array;
  #keys: { lkey: number; rkey: number };
  /** Where the region starts in this process's address space: what peers address. */
  readonly address: bigint;
  /** Bytes. */
  readonly length: number;
  #access: readonly Access[];

  /** @internal */
  constructor(
    pd: ProtectionDomain,
    region: NativeMemoryRegion,
    bytes: Uint8Array,
    access: readonly Access[],
  ) {
    const { native } = useBinding();
    super('MemoryRegion', 2, region.handle, (handle) => native.deregisterMemory(handle), [pd]);
    if (bytes.buffer instanceof ArrayBuffer) markAsUntransferable(bytes.buffer);
    this.protectionDomain = pd;
    this.bytes = bytes;
    this.#keys = { lkey: region.lkey, rkey: region.rkey };
    this.address = region.address;
    this.length = region.length;
    this.#access = [...access];
    const neighbours = regionsByBuffer.get(bytes.buffer);
    if (neighbours === undefined) regionsByBuffer.set(bytes.buffer, [this]);
    else neighbours.push(this);
  }

  /** Local key, as C sees it; requests name the region, not the key. */
  get lkey(): number {
    return this.#keys.lkey;
  }

  /** Remote key: what a peer needs to reach the region, if its access allows that. */
  get rkey(): number {
    return this.#keys.rkey;
  }

  /** What was granted. */
  get access(): readonly Access[] {
    return this.#access;
  }

  /**
   * Changes what peers may do: `ibv_rereg_mr(3)`. The keys may be new ones afterwards. Throws `EBUSY` while a request in
   * flight or a memory window uses the region, `ENOTSUP` where the provider can't: register the memory anew there.
   */
  reregister(access: readonly Access[]): void {
    rings().requests.flush();
    const mask = accessMask(access, this.protectionDomain.device.transport === 'iwarp');
    this.#keys = useBinding().native.reregisterMemory(this.handle, mask);
    this.#access = [...access];
  }

  protected override details(): object {
    const { lkey, rkey, address, length, access } = this;
    return { lkey, rkey, address, length, access };
  }

  /**
   * Work requests in flight that use the region, and memory windows bound to it; what waits in the submission ring is
   * posted, and counts.
   */
  get inFlight(): number {
    rings().requests.flush();
    return useBinding().native.memoryInFlight(this.handle);
  }

  /** The descriptor that lets a peer reach `length` bytes from `offset`, within the access that was granted. */
  remote(offset = 0, length?: number): RemoteMemory {
    requireInteger('offset', offset, 0, this.length);
    const rest = this.length - offset;
    const granted = length === undefined ? rest : requireInteger('length', length, 0, rest);
    return new RemoteMemory(this.address + BigInt(offset), this.rkey, granted);
  }

  /** `ibv_dereg_mr(3)`. Rejects with `EBUSY`, and stays open, while a work request in flight or a memory window uses the region. */
  override close(): Promise<void> {
    if (!this.closed && this.inFlight > 0) return Promise.reject(systemError(16, 'ibv_dereg_mr'));
    const neighbours = regionsByBuffer.get(this.bytes.buffer) ?? [];
    if (!this.closed) neighbours.splice(neighbours.indexOf(this), 1);
    return super.close();
  }
}
