import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a complete image consists of. It is written last, so a folder without it is half an image. */
export interface Manifest {
  readonly kernel: string;
  readonly files: Readonly<Record<string, string>>;
}

const manifestName = 'manifest.json';

export async function writeManifest(folder: string, kernel: string, names: readonly string[]): Promise<void> {
  const hashes = await Promise.all(names.map(async (name) => [name, await hashFile(join(folder, name))]));
  const manifest: Manifest = { kernel, files: Object.fromEntries(hashes) };
  await writeFile(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** @returns the manifest, or undefined unless every one of `names` is listed and every listed file is as it was written. */
export async function verifyManifest(
  folder: string,
  names: readonly string[],
): Promise<Manifest | undefined> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(folder, manifestName), 'utf8'));
    if (!isManifest(manifest) || !names.every((name) => name in manifest.files)) return undefined;
    const intact = await Promise.all(
      Object.entries(manifest.files).map(
        async ([name, hash]) => (await hashFile(join(folder, name))) === hash,
      ),
    );
    return intact.every(Boolean) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

function isManifest(value: unknown): value is Manifest {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kernel' in value &&
    typeof value.kernel === 'string' &&
    'files' in value &&
    typeof value.files === 'object' &&
    value.files !== null
  );
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}
