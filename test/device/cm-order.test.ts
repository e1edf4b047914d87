import { once } from 'node:events';
import { type CmEvent, CmId, EventChannel } from 'node-rdma/cm';
import { CompletionQueue, Device, ProtectionDomain } from 'node-rdma/verbs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devices } from '../support/devices.js';
import { connectPair, Endpoint, Listener, resolve } from '../support/verbs/endpoint.js';

const withCode = (code: string) => expect.objectContaining({ code });

describe.each(devices)('on %s', (_, device) => {
  let listener: Listener;

  beforeEach(() => {
    listener = new Listener(device);
  });

  afterEach(() => listener.close());

  test('an id that is new can be neither connected nor answered with', async () => {
    const id = new CmId(listener.channel);
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL', syscall: 'rdma_connect' });
    await expect(id.resolveRoute()).rejects.toMatchObject({ code: 'EINVAL' });
    expect(() => id.accept()).toThrow(withCode('EINVAL'));
    expect(() => id.reject()).toThrow(withCode('EINVAL'));
    const opened = Device.open(device.device);
    const pd = new ProtectionDomain(opened);
    const cq = new CompletionQueue(opened, { entries: 4 });
    expect(() => id.createQueuePair(pd, { sendCompletionQueue: cq, receiveCompletionQueue: cq })).toThrow(
      withCode('EINVAL'),
    );
    await opened.close();
    expect(id.device).toBeUndefined();
    id.disconnect();
    id.bind({ address: device.address, port: 0 });
    await expect(id.resolveRoute()).rejects.toMatchObject({ code: 'EINVAL' });
    await id.close();
  });

  test('a listener is nothing but a listener', async () => {
    const { id, destination } = listener;
    await expect(id.resolveAddress(destination)).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(id.resolveRoute()).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
    expect(() => id.accept()).toThrow(withCode('EINVAL'));
    expect(() => id.reject()).toThrow(withCode('EINVAL'));
    expect(() => id.bind({ address: device.address, port: 0 })).toThrow(withCode('EINVAL'));
  });

  test('an id without a queue pair is not connected', async () => {
    const id = await resolve(listener.channel, listener.destination);
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
    expect(() => id.listen()).toThrow(expect.anything());
    await id.close();
  });

  test('an id has one queue pair, and connects once', async () => {
    const requested = listener.request();
    const id = await resolve(listener.channel, listener.destination);
    const active = new Endpoint(id);
    expect(() =>
      id.createQueuePair(active.pd, { sendCompletionQueue: active.cq, receiveCompletionQueue: active.cq }),
    ).toThrow(withCode('EINVAL'));
    const connecting = id.connect();
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
    const { id: request } = await requested;
    await connecting;
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
    await request.close();
    await active.close();
  });

  test('a request is answered once', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const established = once(active.id, 'established');
    await active.id.connect();
    const { id } = await requested;
    expect(() => id.accept()).toThrow(withCode('EINVAL'));
    const passive = new Endpoint(id);
    await expect(id.connect()).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(id.resolveAddress(listener.destination)).rejects.toMatchObject({ code: 'EINVAL' });
    expect(() => id.listen()).toThrow(withCode('EINVAL'));
    id.accept();
    expect(() => id.accept()).toThrow(withCode('EINVAL'));
    expect(() => id.reject()).toThrow(withCode('EINVAL'));
    await established;
    await active.close();
    await passive.close();
  });

  test('a rejected request stays rejected', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const rejected = once(active.id, 'rejected');
    const connecting = active.id.connect();
    const { id } = await requested;
    const passive = new Endpoint(id);
    id.reject();
    expect(() => id.accept()).toThrow(withCode('EINVAL'));
    expect(() => id.reject()).toThrow(withCode('EINVAL'));
    await connecting;
    await rejected;
    await active.close();
    await passive.close();
  });

  test('sends before the connection stands are refused, and those after it go', async () => {
    const early: Promise<unknown>[] = [];
    const pair = await connectPair(device, {
      active: {
        prepare: (endpoint) => {
          early.push(endpoint.send(1).catch((error) => error.cause.code));
        },
      },
      passive: {
        prepare: (endpoint) => {
          early.push(endpoint.send(1).catch((error) => error.cause.code));
          early.push(endpoint.receive(64));
        },
      },
    });
    await pair.active.send(7);
    expect(await Promise.all(early)).toEqual(['ENOTCONN', 'ENOTCONN', { byteLength: 7 }]);
    await pair.close();
  });

  test('disconnecting twice, and from both sides at once, is harmless', async () => {
    const pair = await connectPair(device);
    const ends = [once(pair.active.id, 'disconnected'), once(pair.passive.id, 'disconnected')];
    pair.active.id.disconnect();
    pair.passive.id.disconnect();
    pair.active.id.disconnect();
    await Promise.all(ends);
    pair.active.id.disconnect();
    await pair.close();
  });

  test('disconnecting before the peer has answered does not wait for its answer', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const connecting = active.id.connect();
    const { id } = await requested;
    const passive = new Endpoint(id);
    await connecting;
    active.id.disconnect();
    active.id.disconnect();
    // In this process nothing could be answered if that had waited: after ten seconds siw takes no answer any more.
    try {
      id.accept();
    } catch (error) {
      // The peer was faster.
      expect(error).toMatchObject({ code: 'ECONNRESET' });
    }
    await Promise.all([active.close(), passive.close()]);
  });

  test('an id that was disconnected before the peer has answered can be closed at once', async () => {
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    await active.id.connect();
    const { id } = await requested;
    active.id.disconnect();
    const closing = active.close();
    id.reject();
    await closing;
    await id.close();
  });

  test('closing an id leaves the others of its channel alone', async () => {
    const others = Array.from({ length: 4 }, () => new CmId(listener.channel));
    const resolved = others.map((id) => id.resolveAddress(listener.destination));
    await Promise.all([
      expect(resolved[0]).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' }),
      others[0]!.close(),
      ...resolved.slice(1),
    ]);
    await Promise.all(others.map((id) => id.close()));
  });
});

describe.each(devices)('on %s', (_, device) => {
  test('a request that nobody listens for is rejected', async () => {
    const channel = new EventChannel();
    const id = new CmId(channel);
    id.bind({ address: device.address, port: 0 });
    id.listen();
    const destination = { address: device.address, port: id.info.localPort };
    const active = new Endpoint(await resolve(channel, destination));
    const rejected = once(active.id, 'rejected') as Promise<[CmEvent]>;
    await active.id.connect();
    expect((await rejected)[0].name).toBe('rejected');
    await active.close();
    await channel.close();
  });

  test('an address is taken by one listener', async () => {
    const listener = new Listener(device);
    const second = new CmId(listener.channel);
    expect(() => {
      second.bind(listener.destination);
      second.listen();
    }).toThrow(withCode('EADDRINUSE'));
    await listener.close();
  });

  test('a port that nobody listens on refuses', async () => {
    const listener = new Listener(device);
    const { destination, channel } = listener;
    await listener.id.close();
    const active = new Endpoint(await resolve(channel, destination));
    const rejected = once(active.id, 'rejected');
    if (device.iwarp) {
      await expect(active.id.connect()).rejects.toMatchObject({
        code: 'ECONNREFUSED',
        syscall: 'rdma_connect',
      });
    } else {
      await active.id.connect();
      await rejected;
    }
    await active.close();
    await channel.close();
  });

  test('private data reaches the peer both ways, up to what the device takes', async () => {
    const bytes = (length: number) => Uint8Array.from({ length }, (__, i) => i + 1);
    const listener = new Listener(device);
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const { connectPrivateData, acceptPrivateData } = active.device.capabilities;
    const established = once(active.id, 'established') as Promise<[CmEvent]>;
    await active.id.connect({ privateData: bytes(connectPrivateData) });
    const { id, event } = await requested;
    expect(event.privateData).toEqual(bytes(connectPrivateData));
    const passive = new Endpoint(id);
    id.accept({ privateData: bytes(acceptPrivateData) });
    expect((await established)[0].privateData).toEqual(bytes(acceptPrivateData));
    await active.close();
    await passive.close();
    await listener.close();
  });

  test('one byte of private data too many is refused, and wraps nowhere', async () => {
    const listener = new Listener(device);
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const { connectPrivateData } = active.device.capabilities;
    await expect(
      active.id.connect({ privateData: new Uint8Array(connectPrivateData + 1) }),
    ).rejects.toMatchObject({ code: device.iwarp ? 'EMSGSIZE' : 'EINVAL' });
    await active.close();
    await listener.close();
  });

  test('the reason for a rejection reaches the active side', async () => {
    const listener = new Listener(device);
    const requested = listener.request();
    const active = new Endpoint(await resolve(listener.channel, listener.destination));
    const rejected = once(active.id, 'rejected') as Promise<[CmEvent]>;
    await active.id.connect();
    const { id } = await requested;
    id.reject(Buffer.from('no, thank you'));
    const { privateData } = (await rejected)[0];
    expect(Buffer.from(privateData).toString('latin1', 0, 13)).toBe('no, thank you');
    await id.close();
    await active.close();
    await listener.close();
  });
});
