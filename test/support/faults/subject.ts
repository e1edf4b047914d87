/** The process with the watched side of a connection: it brings it to a stage, and tells what a fault made of it. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, type ConnectionRequest, connect, createServer, type Server } from 'node-rdma';
import { useBinding } from '#lib/binding/addon.js';
import type { Cell, Stage } from './cell.js';
import type { Begin, Order, Result, Told } from './messages.js';
import { patienceOf, subjectOptions } from './terms.js';
import { WatchedConnection } from './watched-connection.js';

/** Messages that wait from the beginning, are on their way when the fault comes, and follow it. */
const counts = { first: 5, flood: 64, more: 32 } as const;

/** What is in the way of the watched connection in the queue of a server that does not answer. */
const crowd = 8;

function tell(told: Told): void {
  process.send?.(told);
}

let go = () => {};
function gone(): Promise<void> {
  return new Promise((resolve) => {
    go = resolve;
  });
}

/** Brings a connection that both sides have to the stage, where it is when this resolves. */
async function reach(stage: Stage, watched: WatchedConnection, cell: Cell): Promise<void> {
  if (stage !== 'traffic' && stage !== 'closing') return;
  watched.send(1);
  await watched.back(1);
  watched.send(counts.flood);
  if (stage === 'closing') void watched.connection.close({ timeout: cell.fault === 'time-out' ? 100 : 3000 });
}

async function inflict(
  { fault, stage }: Cell,
  watched: WatchedConnection,
  abort: AbortController,
): Promise<void> {
  const { connection } = watched;
  if (fault === 'abort') abort.abort();
  else if (fault === 'close') void connection.close({ timeout: 2000 });
  else if (fault === 'destroy') connection.destroy();
  if (stage === 'established') watched.send(counts.first);
  if (stage === 'traffic') watched.send(counts.more, ...(fault === 'time-out' ? [50] : []));
}

/** The stages that a step of the handshake begins, on the active side. */
const steps: Partial<Record<Stage, string>> = {
  connecting: 'connecting',
  requested: 'connecting',
  readPosted: 'readPosted',
  goPosted: 'goPosted',
};

async function runActive({ cell, host, port }: Begin): Promise<Result> {
  const { stage, fault } = cell;
  const abort = new AbortController();
  const others: Connection[] = [];
  if (fault === 'backlog full') {
    for (let i = 0; i < crowd; i++) {
      const other = connect({ host, port, timeout: 60_000 });
      other.on('error', () => {});
      others.push(other);
    }
    // All of them have asked before the watched one does.
    await delay(1500);
  }
  const watched = new WatchedConnection(
    connect({ host, port, ...subjectOptions(cell), signal: abort.signal }),
    patienceOf(cell),
  );
  const step = steps[stage];
  const early = stage !== 'established' && stage !== 'traffic' && stage !== 'closing';
  if (early) watched.send(counts.first);
  // What prevents the stage from being reached is the fault that was wanted.
  const ended = watched.ended;
  if (step !== undefined) await Promise.race([watched.step(step), ended]);
  else if (!early) {
    await Promise.race([watched.connection.established.catch(() => {}), ended]);
    await reach(stage, watched, cell);
  }
  const ordered = gone();
  tell({ type: 'reached' });
  await ordered;
  await inflict(cell, watched, abort);
  const result = await watched.settle();
  for (const other of others) other.destroy();
  return result;
}

async function runPassive({ cell, host }: Begin): Promise<Result> {
  const { stage } = cell;
  const server: Server = createServer();
  await server.listen({ host });
  const requested = once(server, 'request') as Promise<[ConnectionRequest]>;
  tell({ type: 'listening', port: server.address()!.port });
  const [request] = await requested;
  const abort = new AbortController();
  const ordered = gone();
  const accept = () =>
    new WatchedConnection(
      request.accept({ ...subjectOptions(cell), signal: abort.signal }),
      patienceOf(cell),
    );
  let watched: WatchedConnection;
  if (stage === 'requested') {
    tell({ type: 'reached' });
    await ordered;
    watched = accept();
    watched.send(counts.first);
  } else {
    watched = accept();
    if (stage === 'readPosted') watched.send(counts.first);
    else {
      await Promise.race([watched.connection.established.catch(() => {}), watched.ended]);
      await reach(stage, watched, cell);
    }
    tell({ type: 'reached' });
    await ordered;
  }
  await inflict(cell, watched, abort);
  const result = await watched.settle();
  await server.close();
  return result;
}

class Bystander {
  readonly #server: Server;
  readonly #client: Connection;

  static async open(host: string): Promise<Bystander> {
    const server = createServer(async (connection) => {
      for await (const message of connection) await connection.send(message);
    });
    await server.listen({ host });
    const client = connect({ host, port: server.address()!.port });
    await client.ready;
    return new Bystander(server, client);
  }

  constructor(server: Server, client: Connection) {
    this.#server = server;
    this.#client = client;
  }

  async exchange(): Promise<boolean> {
    try {
      await this.#client.send(Buffer.from('ball'), { timeout: 5000 });
      return (await this.#client.receive({ timeout: 5000 }))?.toString() === 'ball';
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.#server.close();
  }
}

let bystander: Bystander | undefined;

/** Closes what is open. What is left of native objects then, when the kernel has taken all the time that it may. */
async function finish(): Promise<Record<string, number>> {
  await bystander?.close();
  const { native } = useBinding();
  // siw goes on connecting for 20 seconds, and waits 10 more for an answer.
  for (let i = 0; ; i++) {
    const left = Object.entries(native.objectCounts()).filter(
      ([kind, count]) => kind !== 'Device' && count > 0,
    );
    if (left.length === 0 || i === 400) return Object.fromEntries(left);
    await delay(100);
  }
}

async function obey(order: Order): Promise<void> {
  if (order.type === 'go') go();
  else if (order.type === 'begin') {
    tell({
      type: 'settled',
      result: await (order.cell.side === 'active' ? runActive(order) : runPassive(order)),
    });
  } else if (order.type === 'open bystander') {
    bystander = await Bystander.open(order.host);
    tell({ type: 'done', left: {} });
  } else if (order.type === 'use bystander') {
    tell({ type: 'bystander', exchanged: (await bystander?.exchange()) ?? false });
  } else if (order.type === 'finish') {
    tell({ type: 'done', left: await finish() });
  }
}

process.on('message', (order: Order) => {
  obey(order).catch((error: Error) => tell({ type: 'failed', message: String(error.stack) }));
});
process.on('disconnect', () => process.exit());
useBinding();
tell({ type: 'loaded' });
