import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examples } from '../support/documentation.js';
import { Project, pathWithoutCompiler, tools } from './project.js';

const documented = examples('10.77.0.1');
/** The first program of README.md. */
const { server = '', program: client } = documented[0]!;

/** The same program for CommonJS, which has no await outside of functions. */
function asCommonJs(program: string): string {
  const required = program.replaceAll(/^import (\{.*?\}) from ('.*?');$/gm, 'const $1 = require($2);');
  return `(async () => {\n${required}})();\n`;
}

/** Every program of the documentation, as TypeScript. */
const documentation = Object.fromEntries(
  documented.flatMap(({ server, program }, number) => [
    [`documentation/${number}.mts`, program],
    ...(server === undefined ? [] : [[`documentation/${number}-server.mts`, server]]),
  ]),
) as Record<string, string>;

const nodeHeaders = dirname(dirname(process.execPath));
const loads = `import('node-rdma').then(({ Device }) => console.log(Device.list().length >= 0 && 'loaded'))`;

/** Starts the server, waits until it listens, and runs the client: what a person does in two terminals. */
const vitestTest = `
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

const until = async (stream, text) => {
  let heard = '';
  for await (const chunk of stream) if ((heard += chunk).includes(text)) return heard;
  throw new Error('ended with: ' + heard);
};

test.each([
  ['an ES module', 'server.mjs', 'client.mjs'],
  ['CommonJS', 'server.cjs', 'client.cjs'],
  ['compiled TypeScript', 'compiled/server.mjs', 'compiled/client.mjs'],
])('the first program runs as %s', async (_, server, client) => {
  const start = (file) => spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const serving = start(server);
  const ended = once(serving, 'close');
  try {
    await until(serving.stdout, 'listening');
    expect(await until(start(client).stdout, '\\n')).toBe('HELLO\\n');
  } finally {
    serving.kill();
    await ended;
  }
}, 120_000);
`;

const tsconfig = (module: string, moduleResolution: string) =>
  JSON.stringify({
    compilerOptions: {
      ...{ module, moduleResolution, target: 'es2023', strict: true, outDir: 'compiled' },
      // The declarations of the package are checked as well.
      ...{ skipLibCheck: false, exactOptionalPropertyTypes: true, types: ['node'] },
    },
    files: ['server.mts', 'client.mts', 'everything.mts'],
  });

const tsconfigOfDocumentation = JSON.stringify({
  extends: './tsconfig.json',
  // Examples are JavaScript: their parameters have no types.
  compilerOptions: { noImplicitAny: false, noEmit: true },
  files: Object.keys(documentation),
});

const everything = `
import * as facade from 'node-rdma';
import * as cm from 'node-rdma/cm';
import * as testing from 'node-rdma/testing';
import * as verbs from 'node-rdma/verbs';
const same: typeof verbs.Device = facade.Device;
const connection: facade.Connection | undefined = undefined;
console.log(same, connection, cm.CmId, testing.useStandIn);
`;

const identity = `
const facade = require('node-rdma');
const verbs = require('node-rdma/verbs');
Promise.all([import('node-rdma'), import('node-rdma/cm'), import('node-rdma/verbs')]).then(([esm, , verbsEsm]) => {
  const names = Object.keys(facade).filter((name) => typeof facade[name] === 'function');
  const differing = names.filter((name) => facade[name] !== esm[name]);
  if (names.length < 5 || differing.length > 0 || facade.Device !== verbsEsm.Device || verbs.Device !== esm.Device)
    throw new Error('differ: ' + differing);
  try {
    facade.connect({ host: '10.0.0.1', port: 0 });
  } catch (error) {
    console.log(error.code);
  }
});
`;

/** What is compiled at installation would be here. */
const compiledFolder = (project: Project) => join(project.folder, 'node_modules/node-rdma/build');

describe('a stranger who installs the package', () => {
  let project: Project;
  beforeAll(async () => {
    project = await Project.create({
      'server.mjs': server,
      'client.mjs': client,
      'server.mts': server,
      'client.mts': client,
      'server.cjs': asCommonJs(server),
      'client.cjs': asCommonJs(client),
      'everything.mts': everything,
      'identity.cjs': identity,
      'test/first-program.test.js': vitestTest,
      ...documentation,
      'tsconfig.documentation.json': tsconfigOfDocumentation,
      'tsconfig.json': tsconfig('nodenext', 'nodenext'),
      'tsconfig.bundler.json': tsconfig('esnext', 'bundler'),
      'package.json': '{ "private": true, "scripts": { "test": "vitest run" } }',
    });
  });
  afterAll(() => project[Symbol.asyncDispose]());

  test('needs no compiler', async () => {
    const PATH = await pathWithoutCompiler(project);
    await project.install(tools, { PATH });
    expect(existsSync(compiledFolder(project))).toBe(false);
    expect(await project.run(['node', '-e', loads], { PATH })).toContain('loaded');
  });

  test('has one class of each name, by import and by require', async () => {
    expect(await project.run(['node', 'identity.cjs'])).toBe('ERR_OUT_OF_RANGE\n');
  });

  test('has the command', async () => {
    expect(await project.run(['npx', 'node-rdma', '--version'])).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each(['tsconfig.json', 'tsconfig.bundler.json', 'tsconfig.documentation.json'])(
    'compiles TypeScript with %s',
    async (config) => {
      await project.run(['npx', 'tsc', '-p', config]);
    },
  );

  test('runs the first program on a siw kernel, with `node-rdma vm -- npm test`', async () => {
    const output = await project.run(['npx', 'node-rdma', 'vm', '--', 'npm', 'test']);
    expect(output).toMatch(/Tests .*3 passed/);
  });

  test('installs on a machine without rdma-core, and is told at the first use what is missing', async () => {
    const libraries = '/usr/lib/*-linux-gnu/lib{rdmacm,ibverbs}.so*';
    const first = `import('node-rdma').then(({ connect }) => connect({ host: '10.0.0.1', port: 1 })).catch(({ code, message }) => console.log(code, message))`;
    const script = `rm ${libraries} && npm rebuild --foreground-scripts node-rdma && [ ! -e node_modules/node-rdma/build ] && node -e "$1"`;
    const output = await project.run(['npx', 'node-rdma', 'vm', '--', 'bash', '-c', script, 'bash', first]);
    expect(output).toContain('ERR_RDMA_UNAVAILABLE');
    expect(output).toContain('apt-get install librdmacm1 ibverbs-providers');
  });
});

describe('with a compiler', () => {
  const settings = { npm_config_nodedir: nodeHeaders };

  test('nothing is compiled where the prebuild fits', async () => {
    await using project = await Project.create({});
    await project.install([], settings);
    expect(existsSync(compiledFolder(project))).toBe(false);
    expect(await project.run(['node', '-e', loads])).toContain('loaded');
  });

  test('the package compiles from its own sources on request', async () => {
    await using project = await Project.create({});
    await project.install([], settings, '--build-from-source');
    expect(existsSync(compiledFolder(project))).toBe(true);
    expect(await project.run(['node', '-e', loads])).toContain('loaded');
  });
});
