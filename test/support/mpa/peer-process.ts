/** A peer in a process of its own, so that it can live in another network namespace: see remote-peer.ts. */
import type { Call, Outcome, PeerMethod } from './remote-peer.js';
import { StrictPeer } from './strict-peer.js';

let peer: StrictPeer | null = null;

async function perform(call: Call): Promise<unknown> {
  if (call.method === 'listen' || call.method === 'connect') {
    peer = call.method === 'listen' ? await StrictPeer.listen(call.to) : await StrictPeer.connect(call.to);
    return peer.localAddress;
  }
  if (peer === null) throw new Error('no peer yet');
  const methods: Record<PeerMethod, (...args: never[]) => Promise<unknown>> = peer;
  return await methods[call.method].apply(peer, call.args as never[]);
}

function report(outcome: Outcome): void {
  process.send?.(outcome);
}

process.on('message', (call: Call) => {
  perform(call).then(
    (value) => report({ id: call.id, value }),
    (error: Error) => report({ id: call.id, error: { name: error.name, message: error.message } }),
  );
});

// The parent is gone, or done with us.
process.on('disconnect', () => process.exit());
