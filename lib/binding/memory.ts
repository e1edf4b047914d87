/** What `allocateMemory` and `registerMemory` return. `address` is where the region starts in this process. */
export interface NativeMemoryRegion {
  handle: number;
  /** The pages as JavaScript sees them; null for memory that JavaScript had before. */
  buffer: ArrayBuffer | null;
  lkey: number;
  rkey: number;
  address: bigint;
  length: number;
}

/** Native functions of memory regions: `native/memory/`. Every number is a handle, a size or a mask of access flags. */
export interface NativeMemory {
  /** `mmap(2)` and `ibv_reg_mr(3)` on the calling thread. */
  allocateMemory(pd: number, length: number, access: number, hugePages: boolean): NativeMemoryRegion;
  /** The same in the worker pool. */
  allocateMemoryAsync(
    pd: number,
    length: number,
    access: number,
    hugePages: boolean,
  ): Promise<NativeMemoryRegion>;
  /** `ibv_reg_mr(3)` of the bytes of a view, in the worker pool. The buffer behind it stays alive; `buffer` is null. */
  registerMemory(pd: number, view: Uint8Array, access: number): Promise<NativeMemoryRegion>;
  /** `ibv_dereg_mr(3)`; `EBUSY` while a work request in flight or a window uses the region. */
  deregisterMemory(region: number): Promise<void>;
  /** Work requests in flight that use the region. */
  memoryInFlight(region: number): number;
  /** `ibv_rereg_mr(3)` of the access; `EBUSY` while it is in use. */
  reregisterMemory(region: number, access: number): { lkey: number; rkey: number };

  /** `type`: `ibv_mw_type`, 1 or 2. */
  allocateMemoryWindow(pd: number, type: number): { handle: number; rkey: number };
  /** `ibv_bind_mw(3)`, for type 1; the new remote key. Its completion comes as that of a request. */
  bindMemoryWindow(
    qp: number,
    window: number,
    region: number,
    offset: number,
    length: number,
    access: number,
    slot: number,
    generation: number,
  ): number;
  deallocateMemoryWindow(window: number): void;
}
