import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

// node-gyp-build runs this at installation, and compiles the addon if it throws. Its own test, to load the addon, would
// take a machine without rdma-core for one that the prebuild does not fit.

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../..', import.meta.url));
const file = (require('node-gyp-build') as { path(root: string): string }).path(root);
try {
  process.dlopen({ exports: {} }, file);
} catch (error) {
  // The libraries may come later. That one is too old would be told in other words, and is a reason to compile.
  if (!/lib(rdmacm|ibverbs)\.so\S*: cannot open shared object file/.test(String(error))) throw error;
}
