import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { RdmaError, systemError } from '../errors.js';
import type { Native, NativeHooks, NativeRings } from './native.js';

/** The addon, loaded and initialised for this environment. */
export interface Binding {
  readonly native: Native;
  readonly rings: NativeRings;
}

type EventHooks = Omit<NativeHooks, 'createError'>;

const hooks: EventHooks = {
  onCompletions: () => {},
  onCmEvent: () => {},
  onAsyncEvent: () => {},
};

/** Sets who hears what the addon reports. The classes above the binding do this once, when they are imported. */
export function setHook<K extends keyof EventHooks>(name: K, hook: EventHooks[K]): void {
  hooks[name] = hook;
}

function load(): Native {
  const require = createRequire(import.meta.url);
  const root = fileURLToPath(new URL('../..', import.meta.url));
  try {
    const path = process.env.NODE_RDMA_ADDON;
    if (path !== undefined) return require(path) as Native;
    return (require('node-gyp-build') as (root: string) => Native)(root);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (process.platform !== 'linux') {
      throw new RdmaError('ERR_RDMA_UNAVAILABLE', `RDMA needs Linux, this is ${process.platform}`, {
        cause: error,
      });
    }
    if (/lib(rdmacm|ibverbs)/.test(reason)) {
      throw new RdmaError(
        'ERR_RDMA_UNAVAILABLE',
        `librdmacm or libibverbs is not installed: apt-get install librdmacm1 ibverbs-providers (${reason})`,
        { cause: error },
      );
    }
    throw new RdmaError(
      'ERR_RDMA_UNAVAILABLE',
      `The native addon of node-rdma does not load: ${reason} (npm rebuild node-rdma --build-from-source)`,
      {
        cause: error,
      },
    );
  }
}

let binding: Binding | undefined;
let substitute: Native | undefined;

/** Puts something else in the place of the addon of this environment. Throws `ERR_RDMA_IN_USE` after its first use. */
export function substituteNative(native: Native): void {
  if (binding !== undefined || substitute !== undefined)
    throw new RdmaError('ERR_RDMA_IN_USE', 'RDMA is used here already: a stand-in has to come first');
  substitute = native;
}

/**
 * The addon of this environment, loaded on first use, so that `import 'node-rdma'` works on every host.
 * Throws `ERR_RDMA_UNAVAILABLE` with what to install where it can't be loaded.
 */
export function useBinding(): Binding {
  if (binding === undefined) {
    const native = substitute ?? load();
    const rings = native.initialize({
      createError: (errno, syscall) => systemError(errno, syscall),
      onCompletions: (cq, first, count) => hooks.onCompletions(cq, first, count),
      onCmEvent: (event) => hooks.onCmEvent(event),
      onAsyncEvent: (type, device, object, port) => hooks.onAsyncEvent(type, device, object, port),
    });
    binding = { native, rings };
  }
  return binding;
}
