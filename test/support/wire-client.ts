/** Makes connections one after the other: see wire-journey.ts. */
import { type ConnectOptions, connect } from 'node-rdma';

export interface Journey {
  readonly host: string;
  readonly port: number;
  readonly options: Partial<ConnectOptions>;
  readonly count: number;
}

/** The message waits from the beginning, so that it leaves as soon as it may. */
async function travel({ host, port, options }: Journey): Promise<void> {
  const connection = connect({ host, port, ...options });
  const sent = connection.send(Buffer.from('ball'));
  await connection.ready;
  await sent;
  await connection.receive();
  await connection.close();
}

process.once('message', async (journey: Journey) => {
  for (let i = 0; i < journey.count; i++) await travel(journey);
  process.disconnect();
});

// The test is gone, or this process is done.
process.on('disconnect', () => process.exit());
