import { constants } from 'node:os';

/** What an {@link RdmaError} carries beside its code and message. */
export interface RdmaErrorOptions {
  /** The error, or the failed work completion, behind this one. */
  cause?: unknown;
  /** Negative errno of the failed call. */
  errno?: number;
  /** The C function that failed, for example `rdma_resolve_addr`. */
  syscall?: string;
  address?: string;
  port?: number;
  /** What the peer said when it rejected the connection, without any header of ours. */
  privateData?: Uint8Array;
}

/**
 * Every error of this library, in the shape of Node's system errors: `code`, and where a C call failed also
 * `errno` (negative) and `syscall`.
 */
export class RdmaError extends Error {
  override readonly name: string = 'RdmaError';
  readonly code: string;
  declare readonly errno?: number;
  declare readonly syscall?: string;
  declare readonly address?: string;
  declare readonly port?: number;
  declare readonly privateData?: Uint8Array;

  constructor(code: string, message: string, options: RdmaErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    const { cause: _, ...details } = options;
    Object.assign(this, details);
  }
}

/** A work request that ended without success: `ibv_poll_cq(3)`, field `status`. */
export class WorkCompletionError extends RdmaError {
  override readonly name: string = 'WorkCompletionError';
  /** The name of the `ibv_wc_status`, for example `RETRY_EXC_ERR`. */
  readonly status: string;
  /** What was asked for, for example `send`. */
  readonly opcode: string;
  /** Vendor-specific error number, 0 where the provider gives none. */
  readonly vendorError: number;

  constructor(status: string, opcode: string, vendorError: number, options: RdmaErrorOptions = {}) {
    super(`ERR_RDMA_WC_${status}`, `${opcode} failed: ${status} (vendor error ${vendorError})`, options);
    this.status = status;
    this.opcode = opcode;
    this.vendorError = vendorError;
  }
}

const errnoNames = new Map<number, string>(
  Object.entries(constants.errno).map(([name, value]) => [value, name] as const),
);
// EWOULDBLOCK and EOPNOTSUPP share their numbers with these on Linux; Node's own errors use these names.
errnoNames.set(constants.errno.EAGAIN, 'EAGAIN');
errnoNames.set(constants.errno.ENOTSUP, 'ENOTSUP');

/** The symbolic name of an errno of either sign, `E…`; `EUNKNOWN` for a number that has none. */
export function errnoName(errno: number): string {
  return errnoNames.get(Math.abs(errno)) ?? 'EUNKNOWN';
}

/** The kernel's own ENOTSUPP, which some of its calls let out: RoCE's multicast of IPv6 for one. */
const kernelNotSupported = 524;

const cures: Record<string, string> = {
  'ibv_reg_mr ENOMEM': 'the limit on locked memory may be reached: see `ulimit -l` (RLIMIT_MEMLOCK)',
  'ibv_create_qp ENOMEM': 'queues too large for the device, or the limit on locked memory: see `ulimit -l`',
  'ibv_create_cq ENOMEM': 'queue too large for the device, or the limit on locked memory: see `ulimit -l`',
  'rdma_create_event_channel ENODEV': 'load the rdma_ucm module: modprobe rdma_ucm',
  'rdma_create_event_channel ENOENT': 'load the rdma_ucm module: modprobe rdma_ucm',
  'rdma_create_event_channel EACCES': 'this user may not open /dev/infiniband/rdma_cm: check its permissions',
  'rdma_resolve_addr EINVAL':
    'an address of a loopback or of no RDMA device: use one that belongs to a device, see `rdma link` and `ip address`',
  'rdma_resolve_addr ENETUNREACH': 'this host has no route to that address',
  'rdma_bind_addr EADDRNOTAVAIL': 'no interface of this host has that address',
  'rdma_resolve_addr ENODEV': 'no RDMA device has an address in that network: see `rdma link`',
  'rdma_get_devices ENODEV': 'this host has no RDMA device: see `rdma link`',
  'ibv_open_device ENOSYS': 'the kernel has no RDMA: modprobe ib_uverbs, and a device',
  'ibv_open_device EMFILE': 'this process has no descriptor left: see `ulimit -n` (RLIMIT_NOFILE)',
  'ibv_open_device ENODEV': 'this host has no such RDMA device: see `rdma link`',
};

/** Makes the error for a failed C call: message `syscall CODE address:port`, with its cure where one is known. */
export function systemError(
  errno: number,
  syscall: string,
  options: Omit<RdmaErrorOptions, 'errno' | 'syscall'> = {},
): RdmaError {
  if (Math.abs(errno) === kernelNotSupported) return systemError(constants.errno.ENOTSUP, syscall, options);
  const code = errnoName(errno);
  let message = `${syscall} ${code}`;
  if (options.address !== undefined) {
    const host = options.address.includes(':') ? `[${options.address}]` : options.address;
    message += ` ${options.port === undefined ? options.address : `${host}:${options.port}`}`;
  }
  const cure = cures[`${syscall} ${code}`];
  if (cure !== undefined) message += ` (${cure})`;
  return new RdmaError(code, message, { ...options, errno: -Math.abs(errno), syscall });
}

/** The error of every use of an object after its `close()`. */
export function closedError(what: string): RdmaError {
  return new RdmaError('ERR_RDMA_CLOSED', `The ${what} is closed`);
}

type CodedError<E extends Error> = E & { code: string };

function coded<E extends Error>(error: E, code: string): CodedError<E> {
  return Object.assign(error, { code });
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'object') return `an instance of ${value.constructor?.name ?? 'Object'}`;
  return `${typeof value} (${String(value).slice(0, 40)})`;
}

export function invalidArgumentType(name: string, expected: string, value: unknown): CodedError<TypeError> {
  return coded(
    new TypeError(`The "${name}" argument must be ${expected}. Received ${describe(value)}`),
    'ERR_INVALID_ARG_TYPE',
  );
}

export function invalidArgumentValue(name: string, value: unknown, reason: string): CodedError<TypeError> {
  return coded(
    new TypeError(`The argument '${name}' ${reason}. Received ${describe(value)}`),
    'ERR_INVALID_ARG_VALUE',
  );
}

export function outOfRange(name: string, range: string, value: unknown): CodedError<RangeError> {
  return coded(
    new RangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${String(value)}`),
    'ERR_OUT_OF_RANGE',
  );
}

/** Checks an integer option or argument: a `TypeError` for anything but a number, a `RangeError` outside. */
export function requireInteger(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') throw invalidArgumentType(name, 'an integer', value);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw outOfRange(name, `an integer >= ${min} and <= ${max}`, value);
  }
  return value;
}

/** Checks that an object has no property but those of `known`: a misspelt option would do nothing, and say nothing. */
export function requireKnown(name: string, options: object, known: readonly string[]): void {
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    throw invalidArgumentValue(
      `${name}.${key}`,
      (options as Record<string, unknown>)[key],
      'is not an option',
    );
  }
}

/** Checks that an options argument is an object (or absent). */
export function requireOptions<T extends object>(name: string, value: T | undefined): T | undefined {
  if (value !== undefined && (typeof value !== 'object' || value === null || Array.isArray(value))) {
    throw invalidArgumentType(name, 'an object', value);
  }
  return value;
}

/** Checks one of a set of strings. */
export function requireOneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if (typeof value !== 'string') throw invalidArgumentType(name, `one of ${allowed.join(', ')}`, value);
  if (!(allowed as readonly string[]).includes(value)) {
    throw invalidArgumentValue(name, value, `must be one of: ${allowed.join(', ')}`);
  }
  return value as T;
}
