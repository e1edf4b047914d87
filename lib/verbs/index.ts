export { RdmaError, WorkCompletionError } from '../errors.js';
export { CompletionChannel } from './completion-channel.js';
export { CompletionQueue, type CompletionQueueOptions, type Waiting } from './completion-queue.js';
export {
  Device,
  type DeviceAttributes,
  type DeviceCapabilities,
  type DeviceSummary,
  type PortAttributes,
  type PortState,
  type Transport,
} from './device.js';
export { type Access, MemoryRegion } from './memory-region.js';
export { completionFlags, type Opcode, opcodes, requestFlags } from './opcode.js';
export { type MemoryOptions, ProtectionDomain } from './protection-domain.js';
export {
  QueuePair,
  type QueuePairAttributes,
  type QueuePairOptions,
  type QueuePairState,
  type Sge,
  type WorkRequest,
} from './queue-pair.js';
export { RemoteMemory } from './remote-memory.js';
export { RequestRing, type RingSge } from './request-ring.js';
export { type Rings, rings } from './rings.js';
export { type CompletionHandler, SlotTable } from './slot-table.js';
export type { CompletionStatus } from './status.js';
export { type CompletionResult, WorkCompletion } from './work-completion.js';
