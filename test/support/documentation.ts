import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** A program of the documentation, or the two that meet. */
export interface Example {
  /** Where it stands, for a person. */
  readonly name: string;
  readonly server?: string;
  /** The client, or what runs alone. */
  readonly program: string;
}

function documents(): string[] {
  const files = readdirSync(`${root}/lib`, { recursive: true, encoding: 'utf8' });
  return ['README.md', ...files.filter((file) => file.endsWith('README.md')).map((file) => `lib/${file}`)];
}

/** The blocks of JavaScript in a document. Each says in its first line what it is. */
function blocksOf(document: string): string[] {
  const text = readFileSync(`${root}/${document}`, 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code!);
}

/** The examples of all documents, made to connect to `address`. */
export function examples(address: string): Example[] {
  const found: Example[] = [];
  for (const document of documents()) {
    let server: string | undefined;
    for (const block of blocksOf(document)) {
      const [, role] = /^\/\/ (\w+)\.mjs\n/.exec(block) ?? [];
      const program = block.replaceAll('10.0.0.1', address);
      const name = `${document}, number ${found.length + 1}`;
      if (role === 'server') server = program;
      else if (role === 'client' && server !== undefined) found.push({ name, server, program });
      else if (role === 'alone') found.push({ name, program });
      else
        throw new Error(`a block of ${document} is neither server.mjs, client.mjs nor alone.mjs:\n${block}`);
    }
  }
  return found;
}
