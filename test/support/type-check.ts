import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** The strict settings that the project itself is compiled with, and nothing written. */
function settings(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(`${root}/tsconfig.base.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  return {
    ...options,
    composite: false,
    incremental: false,
    noEmit: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
  };
}

/** Compiles modules that exist nowhere but here, as a program that uses node-rdma; what is wrong with each, by name. */
export function typeCheck(modules: Readonly<Record<string, string>>): Map<string, string[]> {
  const options = settings();
  const texts = new Map<string, { name: string; text: string }>(
    Object.entries(modules).map(([name, text], i) => [`${root}/test/module-${i}.ts`, { name, text }]),
  );
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
  host.readFile = (path) => texts.get(path)?.text ?? readFile.call(host, path);
  host.getSourceFile = (path, language, ...rest) => {
    const module = texts.get(path);
    if (module === undefined) return getSourceFile.call(host, path, language, ...rest);
    return ts.createSourceFile(path, module.text, language);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  return new Map(
    [...texts].map(([path, { name }]) => [
      name,
      ts
        .getPreEmitDiagnostics(program, program.getSourceFile(path))
        .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' ')),
    ]),
  );
}
