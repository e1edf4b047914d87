/** DDP segments with the RDMAP header in them, decoded: RFC 5041 §4, RFC 5040 §4. */

interface Tagged {
  /** The DDP L flag: the last segment of its message. */
  readonly last: boolean;
  readonly stag: number;
  readonly taggedOffset: bigint;
  readonly payload: Uint8Array;
}

interface Untagged {
  readonly last: boolean;
  /** Message sequence number: counts the messages of a queue from 1. */
  readonly msn: number;
  /** Offset of this segment in its message. */
  readonly messageOffset: number;
}

export interface Write extends Tagged {
  readonly opcode: 'write';
}

export interface ReadResponse extends Tagged {
  readonly opcode: 'read-response';
}

export interface ReadRequest extends Untagged {
  readonly opcode: 'read-request';
  readonly sinkStag: number;
  readonly sinkOffset: bigint;
  readonly size: number;
  readonly sourceStag: number;
  readonly sourceOffset: bigint;
}

export interface Send extends Untagged {
  readonly opcode: 'send';
  readonly solicited: boolean;
  /** The STag that a Send with Invalidate revokes. */
  readonly invalidate: number | null;
  readonly payload: Uint8Array;
}

/**
 * Layer, type and code are read as RFC 5040 §4.8 has them. siw on a little-endian machine swaps the nibbles of layer
 * and type (bit fields in `struct iwarp_terminate`).
 */
export interface Terminate extends Untagged {
  readonly opcode: 'terminate';
  readonly layer: number;
  readonly type: number;
  readonly code: number;
  /** What follows the control field: the headers of the segment that is complained about. */
  readonly payload: Uint8Array;
}

export type Segment = Write | ReadResponse | ReadRequest | Send | Terminate;

export type Opcode = Segment['opcode'];

/** One line for a history. */
export function describeSegment(segment: Segment): string {
  const more = segment.last ? '' : ', more segments follow';
  switch (segment.opcode) {
    case 'write':
    case 'read-response': {
      const name = segment.opcode === 'write' ? 'Write' : 'Read Response';
      return `${name}, ${segment.payload.length} bytes to STag ${hex(segment.stag)} at ${hex(segment.taggedOffset)}${more}`;
    }
    case 'read-request':
      return (
        `Read Request ${segment.msn}, ${segment.size} bytes from STag ${hex(segment.sourceStag)} at ` +
        `${hex(segment.sourceOffset)} to STag ${hex(segment.sinkStag)} at ${hex(segment.sinkOffset)}${more}`
      );
    case 'send': {
      const kind = `Send${segment.invalidate === null ? '' : ` invalidating ${hex(segment.invalidate)}`}`;
      const solicited = segment.solicited ? ' with solicited event' : '';
      return `${kind}${solicited} ${segment.msn}, ${segment.payload.length} bytes at ${segment.messageOffset}${more}`;
    }
    case 'terminate':
      return `Terminate, layer ${segment.layer}, type ${segment.type}, code ${segment.code}`;
  }
}

function hex(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
