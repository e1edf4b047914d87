import { setMaxListeners } from 'node:events';
import type { RankConnectionOptions } from 'node-rdma/job';
import type { WaitOptions } from '#lib/connection/cancellation.js';
import { Job } from '#lib/job/job.js';
import { abandonable, type KeyValueSpace } from '#lib/job/key-value-space.js';
import { normalizeJoinOptions } from '#lib/job/options.js';

/** The key-value space of a launcher, for ranks that are all in this process. */
export class SharedSpace {
  readonly size: number;
  readonly #values = new Map<string, Promise<Uint8Array>>();
  readonly #arrivals = new Map<string, (value: Uint8Array) => void>();

  constructor(size: number) {
    this.size = size;
  }

  /** One rank's view. */
  rank(rank: number): KeyValueSpace {
    const unused = () => {
      throw new Error('ranks of one process neither fence nor abort');
    };
    return {
      namespace: 'shared',
      rank,
      size: this.size,
      localRank: rank,
      put: async (key, value) => {
        void this.#value(rank, key);
        this.#arrivals.get(`${rank}/${key}`)!(value);
      },
      get: (of, key, options: WaitOptions) => abandonable(this.#value(of, key), options, `getting ${key}`),
      fence: unused,
      nodeName: async () => 'node',
      abort: unused,
      finalize: async () => {},
      finalizeSync: () => {},
    };
  }

  #value(rank: number, key: string): Promise<Uint8Array> {
    const name = `${rank}/${key}`;
    let value = this.#values.get(name);
    if (value === undefined) {
      value = new Promise((resolve) => this.#arrivals.set(name, resolve));
      this.#values.set(name, value);
    }
    return value;
  }
}

/** So many ranks, each as if it were a process of its own. */
export function createRanks(size: number, connection: RankConnectionOptions = {}): Job[] {
  const space = new SharedSpace(size);
  const options = normalizeJoinOptions({ connection });
  return Array.from({ length: size }, (_, rank) => {
    const job = new Job(space.rank(rank), options.connection);
    setMaxListeners(0, job);
    return job;
  });
}
