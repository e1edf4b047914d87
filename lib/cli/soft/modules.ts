import { readFile } from 'node:fs/promises';

/** The drivers that make an RDMA device of an ordinary network device, and their kernel modules. */
export const softDrivers = { siw: 'siw', rxe: 'rdma_rxe' } as const;

export type SoftDriver = keyof typeof softDrivers;

/** What `modules.builtin` and `modules.dep` of this kernel list: what it could load, or has in itself. */
export async function availableModules(release: string): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const file of ['modules.builtin', 'modules.dep']) {
    const text = await readFile(`/lib/modules/${release}/${file}`, 'utf8').catch(() => '');
    for (const [, name] of text.matchAll(/^(?:\S*\/)?([\w-]+)\.ko[\w.]*(?=:|$)/gm))
      names.add(name!.replaceAll('-', '_'));
  }
  return names;
}

/** The modules that the kernel has in it now. */
export async function loadedModules(): Promise<ReadonlySet<string>> {
  const text = await readFile('/proc/modules', 'utf8').catch(() => '');
  return new Set([...text.matchAll(/^\S+/gm)].map(([name]) => name));
}
