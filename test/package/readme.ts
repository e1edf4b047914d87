import { readFileSync } from 'node:fs';

const readme = new URL('../../../README.md', import.meta.url);

/** The programs of README.md, in their order. */
export function readmePrograms(): string[] {
  return [...readFileSync(readme, 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code!);
}

/** The first server and the first client that README.md shows, made to meet at an address. */
export function firstPrograms(address: string, port: number): { server: string; client: string } {
  const programs = readmePrograms();
  const find = (name: string): string => {
    const program = programs.find((code) => code.includes(`import { ${name} } from 'node-rdma'`));
    if (program === undefined) throw new Error(`README.md shows no program that imports ${name} alone`);
    return program.replaceAll('10.0.0.1', address).replaceAll('7471', String(port));
  };
  return { server: find('createServer'), client: find('connect') };
}

/** The same program for CommonJS, which has no await outside of functions. */
export function asCommonJs(program: string): string {
  const required = program.replaceAll(/^import (\{.*?\}) from ('.*?');$/gm, 'const $1 = require($2);');
  return `(async () => {\n${required}})();\n`;
}
