import type { AddressHandle } from './address-handle.js';
import type { MemoryWindow } from './memory-window.js';
import type { Opcode } from './opcode.js';
import type { RemoteMemory } from './remote-memory.js';
import type { Sge } from './sge.js';

/** `ibv_qp_type`: reliable connection, unreliable connection, unreliable datagram. */
export type QueuePairType = 'RC' | 'UC' | 'UD';

/** Where a datagram goes. */
export interface DatagramDestination {
  addressHandle: AddressHandle;
  /** The receiver's queue pair number, 24 bits; 0xffffff for a multicast group. */
  queuePairNumber: number;
  /** The receiver's Q_Key, 32 bits; with the highest bit set, the sender's own is taken (`ibv_post_send(3)`). */
  qkey: number;
}

interface RequestParts {
  /** Default: no data. At most the queue pair's limit; 1 for a Read on siw. */
  sges?: readonly Sge[];
  /** 32 bits, for the opcodes with immediate data; the rkey for those that invalidate. */
  immediate?: number;
  /** `IBV_SEND_FENCE`: wait for earlier Reads and atomics. */
  fence?: boolean;
  /** `IBV_SEND_SOLICITED`. */
  solicited?: boolean;
  /** `IBV_SEND_INLINE`: the data is copied when the request is posted. */
  inline?: boolean;
}

interface ConnectedRequest<O extends Opcode> extends RequestParts {
  opcode: O;
  /** For Write, Read and atomics. */
  remote?: RemoteMemory;
  /** For `bindMemoryWindow`, whose only element is what the window opens. {@link MemoryWindow.bind} fills it in. */
  binding?: { window: MemoryWindow; access: number; rkey: number };
  /** Operands of atomics, 64 bits. */
  compareAdd?: bigint;
  swap?: bigint;
}

type DatagramRequest =
  | (RequestParts & { opcode: 'receive' })
  | (RequestParts & { opcode: 'send' | 'sendWithImmediate'; destination: DatagramDestination });

interface Requests {
  RC: ConnectedRequest<Opcode>;
  UC: ConnectedRequest<Exclude<Opcode, 'read' | 'compareAndSwap' | 'fetchAndAdd'>>;
  UD: DatagramRequest;
}

/** `ibv_send_wr` or `ibv_recv_wr`, as a queue pair of this type takes it. */
export type WorkRequest<T extends QueuePairType = QueuePairType> = Requests[T];

/** Everything that can be in a request, whatever the queue pair. */
export interface AnyRequest extends ConnectedRequest<Opcode> {
  destination?: DatagramDestination;
}
