import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { StreamEnd } from '#lib/guest/stream-end.js';

const marker = 'abcabd';

/** What passes when `bytes` are written in pieces of `size`. */
async function pass(bytes: Buffer, size: number) {
  const end = new StreamEnd(marker);
  const passed = buffer(end);
  for (let at = 0; at < bytes.length; at += size) end.write(bytes.subarray(at, at + size));
  end.end();
  return { passed: await passed, trailer: await end.trailer };
}

test.each([1, 2, 3, 5, 7, 100])(
  'bytes pass up to the marker, and the line behind it is kept, in pieces of %i',
  async (size) => {
    const content = Buffer.concat([Buffer.from([0, 255, 10, 13]), Buffer.from('ab abcabc aabcab\n')]);
    const { passed, trailer } = await pass(Buffer.concat([content, Buffer.from(`${marker}17\n`)]), size);
    expect(passed).toEqual(content);
    expect(trailer).toBe('17');
  },
);

test('a stream that ends without the marker passes whole', async () => {
  const { passed, trailer } = await pass(Buffer.from('xx abcab'), 3);
  expect(passed.toString()).toBe('xx abcab');
  expect(trailer).toBeUndefined();
});

test('what cannot be the marker passes before more has come', () => {
  const end = new StreamEnd(marker);
  end.write('progress: 10 %');
  expect(end.read()?.toString()).toBe('progress: 10 %');
});
