import { expect, test } from 'vitest';
import { createHosts } from '#lib/guest/network.js';
import { burstyWire } from '../../scripts/demonstration/news.js';
import { runTrial } from '../../scripts/demonstration/trial.js';
import { printLoss } from '../support/loss.js';

const minutes = 60_000;

// The wire, and the moment of sending, of test/control, which loses nearly all of them.
test(
  'none of 400 messages that the passive side sends at once is lost where reply and message leave in one burst',
  async () => {
    await using network = await createHosts(2);
    const [passive, active] = [network.host(1), network.host(2)];
    await passive.wire.shape(burstyWire);
    const { outcomes, sent } = await runTrial('peer-to-peer', 400, { active, passive });
    console.log(`peer-to-peer: ${outcomes.filter(({ kicked }) => kicked).length} kicks`);
    expect(printLoss('peer-to-peer', outcomes)).toBe(0);
    expect(outcomes.length).toBe(400);
    expect(sent).toBe(400);
  },
  5 * minutes,
);
