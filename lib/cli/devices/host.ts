/** A host as far as RDMA is concerned: what `devices` judges and shows. All of it is plain data. */
export interface Host {
  /** `uname -r` */
  readonly kernel: string;
  /** `ID` and `ID_LIKE` of os-release(5). */
  readonly distribution: readonly string[];
  readonly container: boolean;
  readonly root: boolean;
  /** CAP_IPC_LOCK: the limit of locked memory does not count, except with siw. */
  readonly mayLockMemory: boolean;
  /** Bytes of memory that may be locked, null without a limit: what counts, and how far it could be raised. */
  readonly lockedMemory: { readonly soft: number | null; readonly hard: number | null };
  /** Why the RDMA libraries can't be used, if they can't. */
  readonly libraryError?: string;
  /** What the kernel has loaded, and what it could load, of the modules that matter. */
  readonly modules: { readonly loaded: readonly string[]; readonly available: readonly string[] };
  /** `/dev/infiniband/rdma_cm`, by which connections are made. */
  readonly connectionManager: CharacterDevice;
  readonly devices: readonly HostDevice[];
}

/** A file of /dev/infiniband. The kernel may offer what a container has no file for. */
export interface CharacterDevice {
  readonly path: string;
  readonly kernel: boolean;
  readonly file: boolean;
  readonly accessible: boolean;
}

export interface HostDevice {
  readonly name: string;
  /** `siw`, `rxe`, `mlx5_core`, … */
  readonly driver: string;
  readonly transport: 'iwarp' | 'infiniband' | 'unknown';
  readonly verbs: CharacterDevice;
  readonly ports: readonly HostPort[];
  /** What the device can do; absent if it can't be opened. */
  readonly limits?: DeviceLimits;
  /** Why it can't be opened. */
  readonly openError?: string;
}

export interface HostPort {
  readonly number: number;
  /** `active`, `down`, `init`, `armed`, … */
  readonly state: string;
  readonly linkLayer: 'ethernet' | 'infiniband' | 'unspecified';
  /** The network device, if it is known. */
  readonly netdev: string | null;
  /** Whether that is up; null if it is not known. */
  readonly up: boolean | null;
  readonly addresses: readonly string[];
}

export interface DeviceLimits {
  readonly workRequests: number;
  readonly gatherElements: number;
  readonly gatherElementsOfRead: number;
  readonly readsAtOnce: number;
  readonly completionQueueEntries: number;
  /** Bytes of private data that a request for a connection carries. */
  readonly privateData: number;
  readonly immediateData: boolean;
  readonly atomics: boolean;
  readonly receiverNotReady: boolean;
}

/** What is wrong, and the command or the deed that cures it. */
export interface Finding {
  /** An error keeps connections from being made, a warning will be met later. */
  readonly severity: 'error' | 'warning';
  /** The device concerned, if it is one. */
  readonly device?: string;
  readonly problem: string;
  readonly cure: string;
}
