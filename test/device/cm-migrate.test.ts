import { once } from 'node:events';
import { CmId, EventChannel } from 'node-rdma/cm';
import { describe, expect, test } from 'vitest';
import { devices } from '../support/devices.js';
import { connectPair, Endpoint, Listener, resolve } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });

describe.each(devices)('on %s', (_, device) => {
  test('an id that has moved gets its events from the new channel', async () => {
    const listener = new Listener(device);
    const channel = new EventChannel();
    const id = new CmId(channel);
    await id.resolveAddress(listener.destination);
    const other = new EventChannel();
    id.migrate(other);
    expect(id.channel).toBe(other);
    // What it was made on can go, and the id stays.
    await channel.close();
    expect(id.closed).toBe(false);
    await id.resolveRoute();
    await other.close();
    expect(id.closed).toBe(true);
    await listener.close();
  });

  test('an event that nobody has seen yet moves with its id', async () => {
    const listener = new Listener(device);
    const channel = new EventChannel();
    const id = new CmId(channel);
    const resolving = id.resolveAddress(listener.destination);
    id.migrate(listener.channel);
    await resolving;
    await channel.close();
    await id.close();
    await listener.close();
  });

  test('requests of a listener that has moved come to its new channel', async () => {
    const listener = new Listener(device);
    const channel = new EventChannel();
    listener.id.migrate(channel);
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    await active.id.connect();
    const { id } = await requested;
    expect(id.channel).toBe(channel);
    await id.close();
    await active.close();
    await channel.close();
    await listener.close();
  });

  test('a connection moves while it carries data', async () => {
    const pair = await connectPair(device);
    const channel = new EventChannel();
    const received = pair.passive.receive(64);
    pair.passive.id.migrate(channel);
    pair.active.id.migrate(channel);
    await pair.active.send(7);
    expect(await received).toMatchObject({ byteLength: 7 });
    const ended = [once(pair.active.id, 'disconnected'), once(pair.passive.id, 'disconnected')];
    pair.active.id.disconnect();
    pair.passive.id.disconnect();
    await Promise.all(ended);
    await pair.close();
    await channel.close();
  });

  test('an id stays where it is while it connects', async () => {
    const listener = new Listener(device);
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const channel = new EventChannel();
    const connecting = active.id.connect();
    expect(() => active.id.migrate(channel)).toThrow(withCode('EBUSY'));
    expect(active.id.channel).toBe(listener.channel);
    await connecting;
    await requested;
    active.id.migrate(channel);
    await active.close();
    await channel.close();
    await listener.close();
  });
});

test('an id does not move to a channel that is closed', async () => {
  const [channel, other] = [new EventChannel(), new EventChannel()];
  const id = new CmId(channel);
  await other.close();
  expect(() => id.migrate(other)).toThrow(withCode('ERR_RDMA_CLOSED'));
  await channel.close();
});
