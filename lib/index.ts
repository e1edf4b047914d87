export { AbortError, type WaitOptions } from './connection/cancellation.js';
export { type Capabilities, capabilities } from './connection/capabilities.js';
export { connect } from './connection/connect.js';
export { Connection, type ConnectionEvents } from './connection/connection.js';
export type { ConnectionState } from './connection/link.js';
export type {
  ConnectionOptions,
  ConnectOptions,
  ListenOptions,
  ServerOptions,
} from './connection/options.js';
export type { Lease } from './connection/receive-queue.js';
export { ConnectionRequest } from './connection/request.js';
export { createServer, Server, type ServerAddress, type ServerEvents } from './connection/server.js';
export { RdmaError, type RdmaErrorOptions, WorkCompletionError } from './errors.js';
export type { PeerToPeerSummary, Step as PeerToPeerStep } from './peer-to-peer/handshake.js';
export type { PrivateDataMessage } from './peer-to-peer/header.js';
export type { Negotiate, PeerToPeerOptions, Rtr, ServerPeerToPeer } from './peer-to-peer/options.js';
export {
  type Access,
  Device,
  type DeviceAttributes,
  type DeviceSummary,
  type MemoryOptions,
  MemoryRegion,
  RemoteMemory,
} from './verbs/index.js';
