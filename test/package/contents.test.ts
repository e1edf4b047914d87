import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packedPackage, repository } from './project.js';

let folder: string;
let files: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'packed-'));
  execFileSync('tar', ['-xzf', await packedPackage(), '-C', folder, '--strip-components=1']);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
});
afterAll(() => rm(folder, { recursive: true }));

describe('the package', () => {
  test('holds what is needed, and nothing else', () => {
    const wanted = [
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|binding\.gyp)$/,
      /^dist\/.*\.(js|d\.ts)$/,
      /^native\/.*\.(cc|h)$/,
      /^lib\/.*\/README\.md$/,
      /^prebuilds\/linux-(x64|arm64)\/node-rdma\.uv1\.glibc\.node$/,
    ];
    expect(files.filter((file) => !wanted.some((pattern) => pattern.test(file)))).toEqual([]);
    expect(files).toContain('prebuilds/linux-x64/node-rdma.uv1.glibc.node');
    for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md', 'binding.gyp', 'dist/cli/main.js'])
      expect(files).toContain(name);
  });

  test('has a source for each of its modules: nothing is left of one that was removed', () => {
    const modules = files.filter((file) => /^dist\/.*\.js$/.test(file));
    const sources = modules.map((file) => file.replace(/^dist/, 'lib').replace(/\.js$/, '.ts'));
    expect(sources.filter((file) => !existsSync(join(repository, file)))).toEqual([]);
  });

  test('names no machine in its text', async () => {
    for (const file of files.filter((name) => /\.(js|ts|json|md)$/.test(name)))
      expect(await readFile(join(folder, file), 'utf8'), file).not.toContain(repository);
  });
});

/** Whether version a is at most b, by the numbers in it. */
function atMost(a: string, b: string): boolean {
  return a.localeCompare(b, 'en', { numeric: true }) <= 0;
}

describe.each(['x64', 'arm64'])('the prebuild for %s', (arch) => {
  const newest = { GLIBC: '2.34', GLIBCXX: '3.4.29', CXXABI: '1.3.13', IBVERBS: '1.8', RDMACM: '1.3' };

  test('needs nothing that is newer than the README says, and only the libraries that it must', () => {
    const file = `${folder}/prebuilds/linux-${arch}/node-rdma.uv1.glibc.node`;
    // Only who cross-compiles has the other one.
    if (arch === 'arm64' && !existsSync(file)) return;
    const dump = execFileSync('objdump', ['-p', file], { encoding: 'utf8' });
    const needed = [...dump.matchAll(/^ +0x\w+ 0x\w+ \d+ ([A-Z]+)_([\d.]+)$/gm)];
    expect(needed.length).toBeGreaterThan(5);
    for (const [, name, version] of needed) {
      const limit = newest[name as keyof typeof newest] ?? '0';
      expect(atMost(version!, limit), `${name}_${version}`).toBe(true);
    }
    const libraries = [...dump.matchAll(/NEEDED +(\S+)/g)].map(([, library]) => library!);
    const allowed =
      /^(librdmacm\.so\.1|libibverbs\.so\.1|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libc\.so\.6|libm\.so\.6|ld-linux.*)$/;
    expect(libraries.filter((library) => !allowed.test(library))).toEqual([]);
  });
});
