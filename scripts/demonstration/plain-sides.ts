// Both sides of connections that nothing gates: no handshake, and the passive side sends as soon as it can.
import { once } from 'node:events';
import { type CmEvent, CmId, EventChannel } from 'node-rdma/cm';
import type { QueuePair } from 'node-rdma/verbs';
import {
  type ActiveNews,
  type Outcome,
  type PassiveNews,
  patience,
  reflection,
  type TrialTask,
} from './news.js';
import { PlainContext, resolveId } from './plain-endpoint.js';

/** Accepts, and sends the greeting right after `rdma_accept()` has returned, until `end` resolves. */
export async function runPlainPassive(
  { address }: TrialTask,
  tell: (news: PassiveNews) => void,
  end: Promise<void>,
): Promise<void> {
  const channel = new EventChannel();
  const listener = new CmId(channel);
  let context: PlainContext | undefined;
  let sent = 0;
  const delays: (number | null)[] = [];
  const accept = (context: PlainContext, id: CmId, queuePair: QueuePair, number: number) => {
    // The active side may have given up, and the id be closed.
    if (id.closed) return;
    try {
      const called = performance.now();
      const sending = context.acceptAndGreet(id, queuePair);
      delays[number] = performance.now() - called;
      sending.then(
        () => sent++,
        () => {},
      );
    } catch {
      void id.close();
    }
  };
  listener.on('connect-request', (_, id) => {
    context ??= new PlainContext(id.device!);
    const queuePair = context.createQueuePair(id);
    // Holds on to the queue pair until then: one that nothing refers to is collected, and its connection with it.
    const close = () => void queuePair.close().then(() => id.close());
    id.on('disconnected', close);
    id.on('connect-error', close);
    setTimeout(accept, reflection, context, id, queuePair, delays.push(null) - 1);
  });
  listener.bind({ address, port: 0 });
  listener.listen();
  tell({ listening: listener.info.localPort });
  await end;
  await channel.close();
  await context?.close();
  tell({ ended: true, sent, delays, timeline: {} });
}

/** What the peer and the wire make of a connection: the event that tells it. */
function decision(id: CmId): Promise<CmEvent> {
  return new Promise((resolve) => {
    for (const name of ['established', 'connect-error', 'unreachable', 'rejected'] as const)
      id.once(name, resolve);
  });
}

/** The end of a connection that was established, or of patience. */
async function silence(id: CmId, stop: AbortSignal): Promise<string> {
  try {
    await once(id, 'disconnected', { signal: AbortSignal.any([stop, AbortSignal.timeout(patience)]) });
    return 'established, and then disconnected';
  } catch {
    return 'established, and then no message';
  }
}

async function tryConnection(channel: EventChannel, { address, port }: TrialTask): Promise<Outcome> {
  const lost = (cause: string): Outcome => ({ received: false, cause, kicked: false });
  const id = await resolveId(channel, address, port);
  const context = new PlainContext(id.device!);
  const stop = new AbortController();
  let queuePair: QueuePair | undefined;
  try {
    queuePair = context.createQueuePair(id);
    const received = context.receive(queuePair).then(
      (whole) => (whole ? '' : 'another message'),
      // It is flushed when the connection ends, which has its own event.
      () => new Promise<string>(() => {}),
    );
    const decided = decision(id);
    await id.connect();
    const { name, status } = await decided;
    if (name !== 'established') return lost(`${name}, status ${status}`);
    const cause = await Promise.race([received, silence(id, stop.signal)]);
    id.disconnect();
    return cause === '' ? { received: true, cause, kicked: false } : lost(cause);
  } catch (error) {
    return lost((error as Error).message);
  } finally {
    stop.abort();
    await queuePair?.close();
    await id.close();
    await context.close();
  }
}

/** Connects, one connection after the other, and waits for the greeting on each. */
export async function runPlainActive(task: TrialTask, tell: (news: ActiveNews) => void): Promise<void> {
  const channel = new EventChannel();
  for (let i = 0; i < task.connections; i++) tell({ outcome: await tryConnection(channel, task) });
  await channel.close();
  tell({ ended: true, timeline: {} });
}
