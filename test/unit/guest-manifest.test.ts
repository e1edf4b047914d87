import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { verifyManifest, writeManifest } from '#lib/guest/manifest.js';

const names = ['vmlinux', 'initrd'];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'guest-manifest-'));
  for (const name of names) await writeFile(join(folder, name), `content of ${name}`);
});

afterEach(() => rm(folder, { recursive: true }));

test('a complete image is recognised, and its kernel told', async () => {
  await writeManifest(folder, '6.1.0-1-amd64', names);
  expect((await verifyManifest(folder, names))?.kernel).toBe('6.1.0-1-amd64');
});

test('an image without a manifest is not whole', async () => {
  expect(await verifyManifest(folder, names)).toBeUndefined();
});

test('an image whose file has changed is not whole', async () => {
  await writeManifest(folder, '6.1.0-1-amd64', names);
  await appendFile(join(folder, 'initrd'), '!');
  expect(await verifyManifest(folder, names)).toBeUndefined();
});

test('an image whose file is missing is not whole', async () => {
  await writeManifest(folder, '6.1.0-1-amd64', names);
  await rm(join(folder, 'vmlinux'));
  expect(await verifyManifest(folder, names)).toBeUndefined();
});

test('an image whose manifest leaves a file out is not whole', async () => {
  await writeManifest(folder, '6.1.0-1-amd64', ['vmlinux']);
  expect(await verifyManifest(folder, names)).toBeUndefined();
});

test.each(['', '{', 'null', '{"kernel":1,"files":{}}', '{"kernel":"6.1","files":null}'])(
  'the manifest %j makes no image whole',
  async (text) => {
    await writeFile(join(folder, 'manifest.json'), text);
    expect(await verifyManifest(folder, names)).toBeUndefined();
  },
);
