import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const exec = promisify(execFile);
export const repository = fileURLToPath(new URL('../../..', import.meta.url));

const { devDependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  devDependencies: Record<string, string>;
};

/** What a stranger's project has beside the package: in the versions that npm has in its cache. */
export const tools: readonly string[] = ['typescript', 'vitest', 'vite', '@types/node'].map(
  (name) => `${name}@${devDependencies[name]}`,
);

let packed: Promise<string> | undefined;

/** The package as it would be published. */
export function packedPackage(): Promise<string> {
  packed ??= pack();
  return packed;
}

async function pack(): Promise<string> {
  const folder = join(repository, '.build', 'package');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await exec('npm', ['pack', '--pack-destination', folder], { cwd: repository });
  const [file] = await readdir(folder);
  return join(folder, file!);
}

/** A project of somebody else's, outside of this repository. */
export class Project implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(files: Readonly<Record<string, string>>): Promise<Project> {
    const project = new Project(await realpath(await mkdtemp(join(tmpdir(), 'stranger-'))));
    await project.write({ 'package.json': '{ "private": true }', ...files });
    return project;
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(this.folder, name)), { recursive: true });
      await writeFile(join(this.folder, name), text);
    }
  }

  /** Runs a program in the project's folder. @returns all that it wrote */
  async run(argv: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
    const [program, ...args] = argv;
    const env = { ...process.env, ...environment };
    // npm of the test run sets these for this repository's own scripts.
    for (const name of Object.keys(env)) if (/^npm_(?!config_)/.test(name)) delete env[name];
    try {
      const { stdout, stderr } = await exec(program!, args, { cwd: this.folder, env, maxBuffer: 2 ** 26 });
      return stdout + stderr;
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${argv.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
    }
  }

  /** Installs the package, and what else is named, as `npm install` does. */
  async install(names: readonly string[], environment: NodeJS.ProcessEnv = {}, ...options: string[]) {
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts'];
    const all = [await packedPackage(), ...names];
    return this.run(['npm', 'install', ...quiet, ...options, ...all], environment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A PATH with Node.js and a shell, and without a compiler or anything else that could build an addon. */
export async function pathWithoutCompiler(project: Project): Promise<string> {
  const folder = join(project.folder, 'bin-without-compiler');
  await mkdir(folder);
  for (const name of ['node', 'npm', 'npx', 'sh', 'env']) {
    const { stdout } = await exec('sh', ['-c', `command -v ${name}`]);
    await symlink(await realpath(stdout.trim()), join(folder, name));
  }
  return folder;
}
