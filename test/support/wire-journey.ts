import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Conversation } from './capture/conversation.js';
import type { PeerHost } from './mpa/remote-peer.js';
import type { Journey } from './wire-client.js';

/** Makes the connections of a journey from a process on `host`. */
export async function travel(host: PeerHost, journey: Journey): Promise<void> {
  const entry = fileURLToPath(new URL('wire-client.js', import.meta.url));
  const [file, ...args] = host.command([process.execPath, entry]);
  const child = spawn(file!, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  });
  child.send(journey);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the client ended with ${code}`);
}

/**
 * The round trips that a connection took until its initiator's first message left: that of TCP's own handshake, and one
 * for every time that the initiator spoke after it had heard the responder. The capture has to be that of the
 * initiator's end of the wire, so that what is before and after is seen as the initiator saw it.
 */
export function roundTripsBeforeMessage({ request, reply, ...fpdus }: Conversation): number {
  const message = fpdus.fromInitiator.find((fpdu) => fpdu.opcode === 'send' && fpdu.payload.length > 0);
  if (request === null || reply === null || message === undefined) throw new Error('no message has left');
  const spoken = [request, ...fpdus.fromInitiator].map(({ at }) => ({ at, heard: false }));
  const heard = [reply, ...fpdus.fromResponder].map(({ at }) => ({ at, heard: true }));
  const until = [...spoken, ...heard].filter(({ at }) => at <= message.at).sort((a, b) => a.at - b.at);
  return 1 + until.filter((event, index) => !event.heard && until[index - 1]?.heard).length;
}

/** Milliseconds from the MPA request to the first message: what comes before is TCP's. */
export function timeToMessage({ request, fromInitiator }: Conversation): number {
  const message = fromInitiator.find((fpdu) => fpdu.opcode === 'send' && fpdu.payload.length > 0);
  return message!.at - request!.at;
}
