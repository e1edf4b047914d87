import type { Cell, Device, Fault, Side, Stage } from './cell.js';

/** What a watched connection may come to in the cells that fit: see `Result.end`. */
interface Row {
  readonly fault: Fault;
  readonly stages?: readonly Stage[];
  readonly side?: Side;
  readonly device?: Device;
  readonly ends: readonly string[];
}

const opening = ['resolving', 'connecting', 'requested'] as const;
const handshake = ['readPosted', 'goPosted'] as const;

/** What rxe says of a peer that does not acknowledge, and of a network device that can't send. */
const unreachable = [
  'ERR_RDMA_WC_RETRY_EXC_ERR',
  'ERR_RDMA_WC_LOC_QP_OP_ERR',
  'ERR_RDMA_PEER_TO_PEER_TIMEOUT',
];

/**
 * The first row that fits counts. Where a row has several ends, the fault races with what the stage leads to: a wire is cut
 * and a device is removed by programs that have to start first, and what is quick gets through before.
 *
 * `closed` without an error at the stages where the connection is plain: without credits nothing tells a peer that is
 * gone from one that has closed.
 */
const table: readonly Row[] = [
  {
    fault: 'peer killed',
    stages: ['resolving', 'connecting'],
    ends: ['ECONNREFUSED', 'ECONNRESET', 'ERR_RDMA_REJECTED'],
  },
  { fault: 'peer killed', stages: ['requested'], side: 'active', ends: ['ERR_RDMA_REJECTED', 'ECONNRESET'] },
  { fault: 'peer killed', stages: ['established'], ends: ['closed'] },
  { fault: 'peer killed', stages: ['closing'], ends: ['closed'] },
  {
    fault: 'peer killed',
    stages: ['readPosted'],
    side: 'active',
    device: 'siw',
    ends: ['ECONNRESET', 'closed'],
  },
  { fault: 'peer killed', device: 'siw', ends: ['ECONNRESET'] },
  // A peer that dies before it has this side's RTU says nothing: then a send is not acknowledged, and its time is up.
  { fault: 'peer killed', ends: ['ECONNRESET', 'ERR_RDMA_WC_RETRY_EXC_ERR', 'ETIMEDOUT', 'closed'] },

  { fault: 'peer stopped', stages: opening, side: 'active', ends: ['ETIMEDOUT'] },
  {
    fault: 'peer stopped',
    stages: ['requested', 'readPosted'],
    side: 'passive',
    ends: ['ERR_RDMA_PEER_TO_PEER_TIMEOUT', 'alive'],
  },
  { fault: 'peer stopped', stages: ['closing'], ends: ['closed'] },
  { fault: 'peer stopped', ends: ['alive'] },

  { fault: 'link down', stages: ['resolving'], ends: ['ENETUNREACH'] },
  { fault: 'link down', stages: ['established', 'closing'], device: 'siw', ends: ['closed'] },
  {
    fault: 'link down',
    stages: ['requested', 'readPosted'],
    side: 'passive',
    device: 'siw',
    ends: ['ERR_RDMA_PEER_TO_PEER_TIMEOUT', 'ECONNRESET'],
  },
  { fault: 'link down', device: 'siw', ends: ['ECONNRESET'] },

  { fault: 'loss of 1 %', stages: ['requested'], side: 'active', ends: ['ETIMEDOUT'] },
  // InfiniBand's connection manager sends a request again after 4 seconds (CMA_CM_RESPONSE_TIMEOUT), and then again.
  { fault: 'loss of 1 %', stages: opening, device: 'rxe', ends: ['whole', 'ETIMEDOUT'] },
  { fault: 'loss of 20 %', stages: opening, device: 'rxe', ends: ['whole', 'ETIMEDOUT'] },
  { fault: 'loss of 1 %', stages: ['closing'], ends: ['closed'] },
  { fault: 'loss of 1 %', ends: ['whole'] },
  { fault: 'loss of 20 %', stages: ['requested'], side: 'active', ends: ['ETIMEDOUT'] },
  { fault: 'loss of 20 %', stages: ['closing'], ends: ['closed'] },
  { fault: 'loss of 20 %', ends: ['whole'] },

  { fault: 'partition', stages: opening, side: 'active', ends: ['ETIMEDOUT'] },
  { fault: 'partition', stages: ['established', 'closing'], device: 'siw', ends: ['closed'] },
  { fault: 'partition', device: 'siw', ends: ['ECONNRESET', 'ERR_RDMA_PEER_TO_PEER_TIMEOUT', 'whole'] },

  { fault: 'partition', stages: ['closing'], device: 'rxe', ends: ['closed', ...unreachable] },
  { fault: 'partition', device: 'rxe', ends: ['whole', ...unreachable] },

  { fault: 'device removed', ends: ['ENODEV', 'whole'] },

  { fault: 'port refused', ends: ['ECONNREFUSED'] },
  { fault: 'no route', ends: ['ENETUNREACH'] },
  { fault: 'memlock exhausted', ends: ['ENOMEM'] },

  { fault: 'descriptors exhausted', stages: ['resolving'], ends: ['EMFILE'] },
  { fault: 'descriptors exhausted', stages: ['requested'], side: 'passive', ends: ['EMFILE'] },
  { fault: 'descriptors exhausted', stages: ['requested'], side: 'active', ends: ['ETIMEDOUT'] },
  { fault: 'descriptors exhausted', stages: ['closing'], ends: ['closed'] },
  { fault: 'descriptors exhausted', ends: ['whole'] },

  { fault: 'backlog full', ends: ['ETIMEDOUT'] },
  { fault: 'queue overrun', ends: ['whole'] },
  { fault: 'too few receives', device: 'siw', ends: ['closed'] },
  { fault: 'receive buffer too small', device: 'siw', ends: ['closed'] },
  { fault: 'access violation', device: 'siw', ends: ['closed'] },
  // A receiver that is not ready is asked again for ever (rnr_retry 7): the time-out of a send ends it.
  { fault: 'too few receives', device: 'rxe', ends: ['ETIMEDOUT'] },
  // The side whose memory was wanted has its queue pair in the error state, and is told nothing else.
  { fault: 'access violation', device: 'rxe', ends: ['closed', 'ECONNRESET', 'whole'] },
  { fault: 'receive buffer too small', device: 'rxe', ends: ['ERR_RDMA_WC_REM_OP_ERR'] },

  { fault: 'abort', ends: ['ABORT_ERR'] },
  { fault: 'time-out', stages: opening, ends: ['ETIMEDOUT'] },
  { fault: 'time-out', stages: handshake, ends: ['ERR_RDMA_PEER_TO_PEER_TIMEOUT'] },
  { fault: 'time-out', stages: ['closing'], ends: ['closed'] },
  { fault: 'time-out', ends: ['whole'] },
  { fault: 'close', ends: ['closed'] },
  { fault: 'destroy', ends: ['closed'] },
];

/** Ends that the table allows for a cell; undefined if it has forgotten it. */
export function expectedEnds({ device, side, stage, fault }: Cell): readonly string[] | undefined {
  return table.find(
    (row) =>
      row.fault === fault &&
      (row.stages === undefined || row.stages.includes(stage)) &&
      (row.side === undefined || row.side === side) &&
      (row.device === undefined || row.device === device),
  )?.ends;
}
