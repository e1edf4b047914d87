import type { NativeQueuePairAttributes, NativeQueuePairState } from '../binding/verbs.js';
import { invalidArgumentType, invalidArgumentValue, requireOneOf } from '../errors.js';
import { type AddressVector, toNativeAddressVector } from './address-vector.js';

const states = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'] as const;
export type QueuePairState = (typeof states)[number] | 'UNKNOWN';

const migrationStates = ['MIGRATED', 'REARM', 'ARMED'] as const;
export type PathMigrationState = (typeof migrationStates)[number];

const accessBits = {
  'local-write': 1,
  'remote-write': 2,
  'remote-read': 4,
  'remote-atomic': 8,
  'window-bind': 16,
};
/** What the peer of a queue pair may do at all: `IBV_ACCESS_…`. */
export type QueuePairAccess = keyof typeof accessBits;
const accessNames = Object.keys(accessBits) as QueuePairAccess[];

/** Bytes. */
const mtus = [256, 512, 1024, 2048, 4096] as const;
export type PathMtu = (typeof mtus)[number];

/** `ibv_qp_attr`, see `ibv_modify_qp(3)`. */
export interface QueuePairAttributes {
  /** The state to move to: its name, or its `ibv_qp_state`. */
  state?: Exclude<QueuePairState, 'UNKNOWN'> | number;
  /** What the state is assumed to be. */
  currentState?: Exclude<QueuePairState, 'UNKNOWN'>;
  pathMtu?: PathMtu;
  pathMigrationState?: PathMigrationState;
  /** 32 bits, UD only. */
  qkey?: number;
  /** First packet sequence number expected, 24 bits. */
  rqPsn?: number;
  /** First packet sequence number sent, 24 bits. */
  sqPsn?: number;
  /** The peer's queue pair number, 24 bits. */
  destQpNumber?: number;
  access?: readonly QueuePairAccess[];
  /** Index into the table of the port, 16 bits. */
  pkeyIndex?: number;
  /** From 1. */
  portNumber?: number;
  /** 0 to 31, the code of a time: `ibv_modify_qp(3)`. */
  minRnrTimer?: number;
  /** Reads and atomics outstanding towards the peer, 0 to 255. */
  maxRdAtomic?: number;
  /** The same from the peer. */
  maxDestRdAtomic?: number;
  /** 0 (for ever) to 31: 4.096 µs × 2^timeout. */
  timeout?: number;
  /** 0 to 7. */
  retryCount?: number;
  /** 0 to 7, where 7 is for ever. */
  rnrRetry?: number;
  /** Whether `sq-drained` is wanted. */
  sqDrainedNotify?: boolean;
  /** kbit/s. */
  rateLimit?: number;
  /** The way to the peer, RC and UC. */
  addressHandle?: AddressVector;
  alternateAddressHandle?: AddressVector;
  alternatePkeyIndex?: number;
  alternatePortNumber?: number;
  alternateTimeout?: number;
}

/** What `ibv_query_qp(3)` tells; a field that the provider leaves out is 0. */
export interface QueuePairStatus
  extends Required<
    Omit<
      QueuePairAttributes,
      'state' | 'currentState' | 'pathMtu' | 'pathMigrationState' | 'access' | 'sqDrainedNotify'
    >
  > {
  state: QueuePairState;
  currentState: QueuePairState;
  /** Bytes; 0 where there is no path yet. */
  pathMtu: PathMtu | 0;
  pathMigrationState: PathMigrationState;
  access: QueuePairAccess[];
  sqDraining: boolean;
  maxSendWr: number;
  maxReceiveWr: number;
  maxSendSge: number;
  maxReceiveSge: number;
  maxInlineData: number;
}

function accessMask(access: readonly QueuePairAccess[]): number {
  if (!Array.isArray(access)) throw invalidArgumentType('attributes.access', 'an array of names', access);
  return access.reduce(
    (mask, name) => mask | accessBits[requireOneOf('attributes.access', name, accessNames)],
    0,
  );
}

function accessOf(mask: number): QueuePairAccess[] {
  return accessNames.filter((name) => (mask & accessBits[name]) !== 0);
}

function mtuCode(mtu: PathMtu): number {
  if (!mtus.includes(mtu)) {
    throw invalidArgumentValue('attributes.pathMtu', mtu, `must be one of: ${mtus.join(', ')}`);
  }
  return mtus.indexOf(mtu) + 1;
}

export function toNativeAttributes(attributes: QueuePairAttributes): NativeQueuePairAttributes {
  if (typeof attributes !== 'object' || attributes === null) {
    throw invalidArgumentType('attributes', 'an object', attributes);
  }
  const {
    state,
    currentState,
    pathMtu,
    pathMigrationState,
    access,
    sqDrainedNotify,
    addressHandle,
    alternateAddressHandle,
    ...numbers
  } = attributes;
  const native: NativeQueuePairAttributes = numbers;
  if (state !== undefined) {
    native.state =
      typeof state === 'number' ? state : states.indexOf(requireOneOf('attributes.state', state, states));
  }
  if (currentState !== undefined) {
    native.currentState = states.indexOf(requireOneOf('attributes.currentState', currentState, states));
  }
  if (pathMtu !== undefined) native.pathMtu = mtuCode(pathMtu);
  if (pathMigrationState !== undefined) {
    native.pathMigrationState = migrationStates.indexOf(
      requireOneOf('attributes.pathMigrationState', pathMigrationState, migrationStates),
    );
  }
  if (access !== undefined) native.accessFlags = accessMask(access);
  if (sqDrainedNotify !== undefined) native.sqDrainedNotify = sqDrainedNotify ? 1 : 0;
  if (addressHandle !== undefined) {
    native.addressHandle = toNativeAddressVector(addressHandle, 'attributes.addressHandle');
  }
  if (alternateAddressHandle !== undefined) {
    native.alternateAddressHandle = toNativeAddressVector(
      alternateAddressHandle,
      'attributes.alternateAddressHandle',
    );
  }
  return native;
}

/** What the native side says of some attributes, as `modify()` takes it. */
export function fromNativeAttributes(native: NativeQueuePairAttributes): QueuePairAttributes {
  const { state, pathMtu, accessFlags, currentState, pathMigrationState, sqDrainedNotify, ...rest } = native;
  return {
    ...rest,
    ...(state === undefined ? {} : { state: states[state]! }),
    ...(pathMtu === undefined ? {} : { pathMtu: mtus[pathMtu - 1]! }),
    ...(accessFlags === undefined ? {} : { access: accessOf(accessFlags) }),
  };
}

export function toStatus(native: NativeQueuePairState): QueuePairStatus {
  const { state, currentState, pathMtu, pathMigrationState, accessFlags, sqDraining, ...rest } = native;
  return {
    ...rest,
    state: states[state] ?? 'UNKNOWN',
    currentState: states[currentState] ?? 'UNKNOWN',
    pathMtu: mtus[pathMtu - 1] ?? 0,
    pathMigrationState: migrationStates[pathMigrationState] ?? 'MIGRATED',
    access: accessOf(accessFlags),
    sqDraining: sqDraining !== 0,
  };
}
