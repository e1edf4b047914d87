// Both sides of connections with the option: the passive side sends at the same moment, and the library holds it back.
import { type Connection, type ConnectionRequest, connect, createServer } from 'node-rdma';
import {
  type ActiveNews,
  greeting,
  type Outcome,
  type PassiveNews,
  patience,
  reflection,
  type Timeline,
  type TrialTask,
} from './news.js';

/** One small message is all that a connection carries here; the defaults would register half a megabyte. */
const queues = { sendDepth: 8, receiveDepth: 8, maxMessageSize: 256 };

function timelineOf({ peerToPeer }: Connection): Timeline {
  const entries = Object.entries(peerToPeer.times).map(([step, at]) => [step, performance.timeOrigin + at]);
  return Object.fromEntries(entries);
}

/** Accepts, and sends the greeting at once, until `end` resolves. */
export async function runPeerToPeerPassive(
  { address }: TrialTask,
  tell: (news: PassiveNews) => void,
  end: Promise<void>,
): Promise<void> {
  const server = createServer(queues);
  let sent = 0;
  let last: Connection | undefined;
  const accept = (request: ConnectionRequest) => {
    const connection = request.accept();
    last = connection;
    connection.send(greeting).then(
      () => sent++,
      () => {},
    );
    // How it ended is the active side's to tell.
    connection.on('error', () => {});
  };
  server.on('request', (request) => void setTimeout(accept, reflection, request));
  await server.listen({ host: address });
  tell({ listening: server.address()!.port });
  await end;
  const timeline = last === undefined ? {} : timelineOf(last);
  await server.close();
  tell({ ended: true, sent, delays: [], timeline });
}

async function receiveGreeting(connection: Connection): Promise<Outcome> {
  const outcome = (cause: string): Outcome => ({
    received: cause === '',
    cause,
    kicked: connection.peerToPeer.kicked,
  });
  try {
    await connection.ready;
    const message = await connection.receive({ signal: AbortSignal.timeout(patience) });
    await connection.close();
    return outcome(message?.equals(greeting) === true ? '' : 'another message');
  } catch (error) {
    connection.destroy();
    return outcome((error as Error).message);
  }
}

/** Connects, one connection after the other, and waits for the greeting on each. */
export async function runPeerToPeerActive(
  { address, port, connections }: TrialTask,
  tell: (news: ActiveNews) => void,
): Promise<void> {
  let timeline: Timeline = {};
  for (let i = 0; i < connections; i++) {
    const connection = connect({ host: address, port, peerToPeer: { negotiate: 'require' }, ...queues });
    tell({ outcome: await receiveGreeting(connection) });
    timeline = timelineOf(connection);
  }
  tell({ ended: true, timeline });
}
