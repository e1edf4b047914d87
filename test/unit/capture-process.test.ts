import { describe, expect, test } from 'vitest';
import { Capture } from '../support/capture/capture.js';

/** A program in tcpdump's place: Ethernet, no packets, and a summary when it is interrupted. */
function stand(summary: string) {
  const script = `
    process.on('SIGINT', () => {
      console.error(${JSON.stringify(summary)});
      process.exit();
    });
    process.stdout.write(Buffer.from('a1b2c3d400020004000000000000000000040000' + '00000001', 'hex'));
    console.error('tcpdump: listening on wire0, link-type EN10MB (Ethernet), snapshot length 262144 bytes');
    setInterval(() => {}, 1000);
  `;
  return { command: () => [process.execPath, '-e', script] };
}

describe('a capture', () => {
  test('starts when tcpdump listens, and ends with what was captured', async () => {
    const host = stand('2 packets captured\n2 packets received by filter\n0 packets dropped by kernel');
    const capture = await Capture.start({ device: 'wire0', host });
    expect(await capture.until((conversations) => conversations.length === 0)).toEqual([]);
    expect(await capture.stop()).toEqual([]);
  });

  test('is no witness if packets were dropped', async () => {
    const host = stand('2 packets captured\n12 packets received by filter\n10 packets dropped by kernel');
    const capture = await Capture.start({ device: 'wire0', host });
    await expect(capture.stop()).rejects.toThrow(/not complete[\s\S]*10 packets dropped/);
  });

  test('says what tcpdump said if it does not start', async () => {
    const script = "console.error('tcpdump: wire0: No such device exists'); process.exit(1)";
    const host = { command: () => [process.execPath, '-e', script] };
    await expect(Capture.start({ device: 'wire0', host })).rejects.toThrow(/No such device exists/);
  });

  test('says so if there is no such program', async () => {
    const host = { command: () => ['/nowhere/tcpdump'] };
    await expect(Capture.start({ device: 'wire0', host })).rejects.toThrow(/ENOENT/);
  });

  test('tells when what is waited for does not come, or cannot come any more', async () => {
    const host = stand('0 packets dropped by kernel');
    const capture = await Capture.start({ device: 'wire0', host });
    await expect(capture.until(() => false, { within: 1 })).rejects.toThrow(/1 ms were not enough/);
    const pending = expect(capture.until(() => false)).rejects.toThrow(/tcpdump ended before/);
    await capture.stop();
    await pending;
  });
});
