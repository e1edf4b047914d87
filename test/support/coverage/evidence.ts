import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import * as facade from 'node-rdma';
import * as cm from 'node-rdma/cm';
import * as verbs from 'node-rdma/verbs';
import type { Evidence } from './check.js';
import { publicFunctions } from './header.js';

const require = createRequire(import.meta.url);
/** The folder of the project. */
export const root = dirname(require.resolve('node-rdma/package.json'));

/** The headers whose functions are covered. */
export const coveredHeaders = ['infiniband/verbs.h', 'rdma/rdma_cma.h', 'rdma/rdma_verbs.h'] as const;

export function readHeaders(folder: string): Evidence['headers'] {
  return new Map(
    coveredHeaders.map((header) => [header, publicFunctions(readFileSync(`${folder}/${header}`, 'utf8'))]),
  );
}

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** The functions of the two C libraries among the undefined symbols of a shared object. */
function importedFunctions(path: string): Set<string> {
  const symbols = execFileSync('nm', ['--dynamic', '--undefined-only', path], { encoding: 'utf8' });
  return new Set([...symbols.matchAll(/ U ((?:ibv|rdma)_\w+)(?:@|$)/gm)].map(([, name]) => name!));
}

const entryPoints: Readonly<Record<string, unknown>> = { ...facade, ...cm, ...verbs };

/** Whether `Class.member`, `new Class` or `name` is exported from an entry point of the library. */
function offers(api: string): boolean {
  const [first = '', member] = api.replace(/^new /, '').split('.');
  const exported = entryPoints[first];
  if (member === undefined || exported === undefined) return exported !== undefined;
  if (typeof exported !== 'function') return false;
  return member in exported.prototype || member in exported;
}

/** What is there on this machine: its headers, the built addon, the sources and the tests. */
export function gatherEvidence(): Evidence {
  const addon = `${root}/build/Release/node_rdma.node`;
  return {
    headers: readHeaders('/usr/include'),
    imported: importedFunctions(addon),
    source: (path) => readIfThere(`${root}/${path}`),
    test: (name) => readIfThere(`${root}/test/device/${name}.test.ts`),
    offers,
  };
}
