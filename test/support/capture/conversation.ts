import { describeMpaFrame, usesCrc } from '../mpa/mpa-frame.js';
import { type Fpdu, MpaStream, type TimedFrame } from '../mpa/mpa-stream.js';
import { describeSegment } from '../mpa/segment.js';
import { readPcap } from './pcap.js';
import { assembleTcpFlows, type Chunk, type TcpFlow } from './tcp-flow.js';
import { readTcpSegment } from './tcp-segment.js';

/** An MPA connection as a capture shows it. Times are in milliseconds since 1970, at the captured interface. */
export interface Conversation {
  readonly initiator: string;
  readonly responder: string;
  readonly request: TimedFrame | null;
  readonly reply: TimedFrame | null;
  readonly fromInitiator: readonly Fpdu[];
  readonly fromResponder: readonly Fpdu[];
  /** The TCP connection has ended. */
  readonly isOver: boolean;
}

/**
 * The MPA connections in a pcap file, in the order of their SYNs; other traffic is left out. Throws a
 * ProtocolViolation if one of them breaks the rules of MPA, DDP or RDMAP.
 */
export function readConversations(file: Buffer): Conversation[] {
  const segments = readPcap(file)
    .map(readTcpSegment)
    .filter((segment) => segment !== null);
  return assembleTcpFlows(segments).filter(isMpa).map(decode);
}

/** Every frame and FPDU on a line, in the order of time: for the message of a failed expectation. */
export function describeConversation(conversation: Conversation): string {
  const { initiator, responder, request, reply, fromInitiator, fromResponder } = conversation;
  const events = [
    ...[request, reply]
      .filter((frame) => frame !== null)
      .map((frame) => ({
        at: frame.at,
        arrow: frame.kind === 'request' ? '->' : '<-',
        text: describeMpaFrame(frame),
      })),
    ...fromInitiator.map((fpdu) => ({ at: fpdu.at, arrow: '->', text: describeSegment(fpdu) })),
    ...fromResponder.map((fpdu) => ({ at: fpdu.at, arrow: '<-', text: describeSegment(fpdu) })),
  ].sort((a, b) => a.at - b.at);
  const start = events[0]?.at ?? 0;
  const lines = events.map(
    ({ at, arrow, text }) => `  ${(at - start).toFixed(1).padStart(9)} ms  ${arrow} ${text}`,
  );
  return [`${initiator} -> ${responder}`, ...lines].join('\n');
}

const requestKey = Buffer.from('MPA ID Req Frame', 'latin1');

function isMpa({ fromClient }: TcpFlow): boolean {
  const start = Buffer.concat(fromClient.map(({ bytes }) => bytes)).subarray(0, requestKey.length);
  return start.equals(requestKey);
}

function decode(flow: TcpFlow): Conversation {
  const client = direction('request', flow.fromClient);
  const server = direction('reply', flow.fromServer);
  const request = client.frame();
  const reply = server.frame();
  if (request !== null && reply !== null && !reply.reject) {
    const crc = usesCrc(request, reply);
    client.stream.startFpdus(crc);
    server.stream.startFpdus(crc);
  }
  return {
    initiator: flow.client,
    responder: flow.server,
    request,
    reply,
    fromInitiator: client.fpdus,
    fromResponder: server.fpdus,
    isOver: flow.isOver,
  };
}

function direction(kind: 'request' | 'reply', chunks: readonly Chunk[]) {
  let found: TimedFrame | null = null;
  const fpdus: Fpdu[] = [];
  const stream = new MpaStream(kind, {
    frame: (frame) => {
      found = frame;
    },
    fpdu: (fpdu) => fpdus.push(fpdu),
  });
  for (const { bytes, at } of chunks) stream.push(bytes, at);
  return { stream, fpdus, frame: (): TimedFrame | null => found };
}
