/** What PMIx said to a call: `pmix_status_t`, 0 is success, and its name. */
export interface NativePmixOutcome {
  status: number;
  name: string;
}

export interface NativePmixDatum extends NativePmixOutcome {
  /** `pmix_data_type_t`; 0 when there is none. */
  type: number;
  /** Of the types of small unsigned numbers. */
  number: number;
  /** Of strings and byte objects. */
  bytes: Uint8Array;
}

/** PMIx, the part of a rank: `native/job/`. Time-outs are seconds, 0 waits for ever. */
export interface NativeJob {
  /** Loads `libpmix`; returns why it can't be used, or nothing. */
  pmixLoad(path: string): string;
  pmixInitialize(): Promise<NativePmixOutcome & { namespace: string; rank: number }>;
  /** `PMIx_Put` and `PMIx_Commit`. */
  pmixPut(key: string, value: Uint8Array): Promise<NativePmixOutcome>;
  /** `refresh`: asks the rank's own server again. A rank that has published something else is not waited for. */
  pmixGet(rank: number, key: string, timeout: number, refresh: boolean): Promise<NativePmixDatum>;
  pmixFence(timeout: number): Promise<NativePmixOutcome>;
  /** Blocks, and usually does not return: the launcher kills the job. */
  pmixAbort(status: number, message: string): NativePmixOutcome;
  pmixFinalize(): Promise<NativePmixOutcome>;
  /** Blocks. */
  pmixFinalizeSync(): NativePmixOutcome;
}
