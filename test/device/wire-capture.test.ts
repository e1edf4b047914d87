import { type Connection, type ConnectOptions, createServer } from 'node-rdma';
import { describe, expect, onTestFinished, test } from 'vitest';
import { decodePrivateData } from '#lib/peer-to-peer/header.js';
import { Capture } from '../support/capture/capture.js';
import { type Conversation, describeConversation } from '../support/capture/conversation.js';
import { dial, nextConnection, take } from '../support/connection-pair.js';
import { siw } from '../support/devices.js';
import type { Fpdu } from '../support/mpa/mpa-stream.js';
import { text } from '../support/wire-peer.js';

const messages = ['one', 'two', 'three'];

/** The one conversation that a capture has when a connection has carried three messages each way and is closed. */
async function capture(
  options: Partial<ConnectOptions>,
  answer: { privateData?: Uint8Array } = {},
): Promise<Conversation> {
  const server = createServer(answer);
  onTestFinished(() => server.close());
  await server.listen({ host: siw.address });
  const { port } = server.address()!;
  const running = await Capture.start({ device: 'lo', filter: `tcp port ${port}` });
  const connected = nextConnection(server);
  const client = dial(siw, port, options);
  await exchange(client, await connected);
  await client.close();
  await running.until((conversations) => conversations[0]?.isOver === true);
  const conversations = await running.stop();
  expect(conversations).toHaveLength(1);
  return conversations[0]!;
}

async function exchange(client: Connection, accepted: Connection): Promise<void> {
  const sent = messages.map((message) => client.send(Buffer.from(message)));
  expect(await take(accepted, messages.length)).toEqual(messages);
  const answered = messages.map((message) => accepted.send(Buffer.from(message)));
  expect(await take(client, messages.length)).toEqual(messages);
  await Promise.all([...sent, ...answered]);
}

/** What each FPDU is, and for messages what they say. */
function shown(fpdus: readonly Fpdu[]): string[] {
  return fpdus.map((fpdu) => ('payload' in fpdu ? `${fpdu.opcode} ${text(fpdu.payload)}` : fpdu.opcode));
}

const sends = messages.map((message) => `send ${message}`);

describe('on the wire a connection', () => {
  test.each([
    ['without options', {}],
    ['with peerToPeer: false', { peerToPeer: false }],
  ])('%s has its messages and nothing else, and no private data', async (_, options) => {
    const conversation = await capture(options);
    expect(conversation.request!.privateData).toHaveLength(0);
    expect(conversation.reply!.privateData).toHaveLength(0);
    expect(shown(conversation.fromInitiator), describeConversation(conversation)).toEqual(sends);
    expect(shown(conversation.fromResponder), describeConversation(conversation)).toEqual(sends);
  });

  test('without options has exactly the private data that its two programs give', async () => {
    const conversation = await capture(
      { privateData: Buffer.from('the request') },
      { privateData: Buffer.from('the reply') },
    );
    expect(text(conversation.request!.privateData)).toBe('the request');
    expect(text(conversation.reply!.privateData)).toBe('the reply');
    expect(shown(conversation.fromInitiator), describeConversation(conversation)).toEqual(sends);
  });

  test('with peerToPeer has the Read, GO and a header: so what is missing above could be seen', async () => {
    const conversation = await capture({ peerToPeer: true, privateData: Buffer.from('the request') });
    const { request, reply, fromInitiator, fromResponder } = conversation;
    expect(decodePrivateData(request!.privateData)).toEqual({
      header: expect.objectContaining({ peerToPeer: true }),
      user: Uint8Array.from(Buffer.from('the request')),
    });
    expect(decodePrivateData(reply!.privateData)).toEqual({
      header: expect.objectContaining({ peerToPeer: true }),
      user: new Uint8Array(),
    });
    expect(fromInitiator[0], describeConversation(conversation)).toMatchObject({
      opcode: 'read-request',
      size: 0,
    });
    expect(shown(fromInitiator.slice(1, 2))).toEqual(['send ']);
    expect(shown(fromResponder.slice(0, 1))).toEqual(['read-response ']);
  });

  test("with peerToPeer and negotiate 'off' has the Read, no GO and no header", async () => {
    const conversation = await capture({ peerToPeer: { negotiate: 'off' } });
    expect(conversation.request!.privateData).toHaveLength(0);
    expect(conversation.reply!.privateData).toHaveLength(0);
    expect(shown(conversation.fromInitiator), describeConversation(conversation)).toEqual([
      'read-request',
      ...sends,
    ]);
    expect(shown(conversation.fromResponder)).toEqual(['read-response ', ...sends]);
  });
});
