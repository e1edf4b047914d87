export type { NativeObject } from '../binding/native-object.js';
export type {
  NativeDeviceAttributes as DeviceAttributes,
  NativeExtendedDeviceAttributes as ExtendedDeviceAttributes,
  NativeQueuePair as QueuePairCapacity,
} from '../binding/verbs.js';
export { RdmaError, WorkCompletionError } from '../errors.js';
export { AddressHandle, grhLength } from './address-handle.js';
export type { AddressVector } from './address-vector.js';
export type {
  AsyncEvent,
  AsyncEventName,
  AsyncEvents,
  CompletionQueueEventName,
  DeviceEventName,
  QueuePairEventName,
  SharedReceiveQueueEventName,
} from './async-event.js';
export type { DeviceCapabilities } from './capabilities.js';
export { CompletionChannel } from './completion-channel.js';
export type { CompletionField } from './completion-field.js';
export { CompletionQueue, type CompletionQueueOptions, type Waiting } from './completion-queue.js';
export {
  Device,
  type DeviceSummary,
  type GidEntry,
  type PortAttributes,
  type PortState,
  type Transport,
} from './device.js';
export { type Access, MemoryRegion } from './memory-region.js';
export { MemoryWindow, type WindowAccess, type WindowBinding } from './memory-window.js';
export { completionFlags, type Opcode, opcodes, requestFlags } from './opcode.js';
export { type MemoryOptions, ProtectionDomain } from './protection-domain.js';
export { QueuePair, type QueuePairOptions } from './queue-pair.js';
export type {
  PathMigrationState,
  PathMtu,
  QueuePairAccess,
  QueuePairAttributes,
  QueuePairState,
  QueuePairStatus,
} from './queue-pair-attributes.js';
export { RemoteMemory } from './remote-memory.js';
export { RequestRing, type RingSge } from './request-ring.js';
export { type Rings, rings } from './rings.js';
export type { Sge } from './sge.js';
export { SharedReceiveQueue, type SharedReceiveQueueOptions } from './shared-receive-queue.js';
export { type CompletionHandler, SlotTable } from './slot-table.js';
export type { CompletionStatus } from './status.js';
export { type CompletionResult, type DatagramSource, WorkCompletion } from './work-completion.js';
export type { DatagramDestination, QueuePairType, WorkRequest } from './work-request.js';
