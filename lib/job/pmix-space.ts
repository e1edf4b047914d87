import { setTimeout as delay } from 'node:timers/promises';
import { useBinding } from '../binding/addon.js';
import type { NativePmixDatum, NativePmixOutcome } from '../binding/job.js';
import { maxDelay, type WaitOptions } from '../connection/cancellation.js';
import { RdmaError } from '../errors.js';
import { abandonable, type KeyValueSpace } from './key-value-space.js';

/** `PMIX_RANK_WILDCARD`: the job itself. */
const wholeJob = 0xffff_fffe;

/** `pmix_data_type_t` of what is published by {@link PmixSpace.put}. */
const byteObject = 27;

const jobSize = 'pmix.job.size';
const localRank = 'pmix.lrank';
const hostName = 'pmix.hname';

/** Milliseconds: what describes the job is there already, or never comes. */
const descriptionTimeout = 30_000;

/** `PMIX_ERR_TIMEOUT` and `PMIX_ERR_NOT_FOUND`. */
const timedOut = -24;
const notFound = -46;

/** Milliseconds between two looks for a value that is not there yet. */
const firstPause = 20;
const longestPause = 1000;

const defaultLibrary = 'libpmix.so.2';

const seconds = (milliseconds: number | undefined) =>
  milliseconds === undefined ? 0 : Math.ceil(milliseconds / 1000);

function check<T extends NativePmixOutcome>(outcome: T, call: string, what = ''): T {
  if (outcome.status === 0) return outcome;
  const { name, status } = outcome;
  const code = status === timedOut ? 'ETIMEDOUT' : 'ERR_RDMA_PMIX';
  throw new RdmaError(code, `${call}${what}: ${name || 'status'} (${status})`, { syscall: call });
}

/** The space of a launcher that speaks PMIx: `mpirun`, `srun --mpi=pmix`, `prun`. */
export class PmixSpace implements KeyValueSpace {
  readonly namespace: string;
  readonly rank: number;
  readonly size: number;
  readonly localRank: number;

  /** `library`: file name of libpmix. */
  static async join(library = defaultLibrary): Promise<PmixSpace> {
    const { native } = useBinding();
    const problem = native.pmixLoad(library);
    if (problem !== '') {
      throw new RdmaError(
        'ERR_RDMA_PMIX_UNAVAILABLE',
        `The launcher speaks PMIx, but its library can't be used (${problem}). Install it, on Debian with ` +
          '`apt-get install libpmix2`, or name the file in the option `library`',
      );
    }
    const { namespace, rank } = check(await native.pmixInitialize(), 'PMIx_Init');
    const number = async (of: number, key: string) => {
      const datum = await native.pmixGet(of, key, seconds(descriptionTimeout), false);
      return check(datum, 'PMIx_Get', ` of ${key}`).number;
    };
    return new PmixSpace(namespace, rank, await number(wholeJob, jobSize), await number(rank, localRank));
  }

  private constructor(namespace: string, rank: number, size: number, local: number) {
    this.namespace = namespace;
    this.rank = rank;
    this.size = size;
    this.localRank = local;
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    check(await useBinding().native.pmixPut(key, value), 'PMIx_Put', ` of ${key}`);
  }

  async get(rank: number, key: string, options: WaitOptions): Promise<Uint8Array> {
    const what = ` of ${key} from rank ${rank}`;
    const abandoned = new AbortController();
    try {
      return await abandonable(this.#poll(rank, key, options, abandoned.signal), options, `PMIx_Get${what}`);
    } finally {
      abandoned.abort();
    }
  }

  async fence(options: WaitOptions): Promise<void> {
    const call = useBinding().native.pmixFence(seconds(options.timeout));
    check(await abandonable(call, options, 'the fence'), 'PMIx_Fence');
  }

  async nodeName(rank: number): Promise<string> {
    const datum = await useBinding().native.pmixGet(rank, hostName, seconds(descriptionTimeout), false);
    return Buffer.from(check(datum, 'PMIx_Get', ` of ${hostName}`).bytes).toString();
  }

  abort(status: number, message: string): void {
    useBinding().native.pmixAbort(status, message);
  }

  async finalize(): Promise<void> {
    check(await useBinding().native.pmixFinalize(), 'PMIx_Finalize');
  }

  finalizeSync(): void {
    useBinding().native.pmixFinalizeSync();
  }

  /** A server waits for a rank that has published nothing, but not for one that has published something else. */
  async #poll(rank: number, key: string, options: WaitOptions, abandoned: AbortSignal): Promise<Uint8Array> {
    const what = ` of ${key} from rank ${rank}`;
    let datum = await this.#ask(rank, key, options, false);
    for (let pause = firstPause; datum.status === notFound; pause = Math.min(2 * pause, longestPause)) {
      await delay(pause, undefined, { signal: abandoned });
      datum = await this.#ask(rank, key, options, true);
    }
    check(datum, 'PMIx_Get', what);
    if (datum.type !== byteObject) {
      throw new RdmaError('ERR_RDMA_PMIX', `PMIx_Get${what}: a value of an unexpected type, ${datum.type}`);
    }
    return datum.bytes;
  }

  #ask(
    rank: number,
    key: string,
    { timeout = maxDelay }: WaitOptions,
    refresh: boolean,
  ): Promise<NativePmixDatum> {
    return useBinding().native.pmixGet(rank, key, seconds(timeout), refresh);
  }
}
