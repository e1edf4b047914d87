import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import { RdmaError } from '../errors.js';
import { Job } from './job.js';
import { type KeyValueSpace, SoloSpace } from './key-value-space.js';
import { type JoinOptions, normalizeJoinOptions } from './options.js';
import { PmixSpace } from './pmix-space.js';

let joined: Promise<Job> | undefined;

/**
 * Joins the job that this process is a rank of, under any launcher that speaks PMIx: Open MPI's `mpirun`,
 * `srun --mpi=pmix`, `prun`. Outside of one: a job of one. A process is in one job: later calls return the same.
 *
 * ```js
 * await using job = await joinJob();
 * await job.listen();
 * const next = await job.connect((job.rank + 1) % job.size);
 * await next.send(Buffer.from(`greetings from rank ${job.rank}`));
 * ```
 *
 * A rank whose process ends with a status other than 0, after an uncaught exception for example, aborts the job: its
 * launcher ends the other ranks, instead of letting them wait for ever.
 *
 * Rejects with `ERR_RDMA_PMIX_UNAVAILABLE` where libpmix is missing, `ERR_RDMA_PMIX` when the launcher fails, and
 * `ERR_RDMA_NO_PMIX` under a launcher that has not been asked for PMIx.
 */
export function joinJob(options?: JoinOptions): Promise<Job> {
  joined ??= join(options).catch((error) => {
    joined = undefined;
    throw error;
  });
  return joined;
}

async function join(options?: JoinOptions): Promise<Job> {
  const { connection, library } = normalizeJoinOptions(options);
  if (!isMainThread) {
    throw new RdmaError('ERR_RDMA_NOT_MAIN_THREAD', 'A rank is a process: its main thread joins the job');
  }
  const space = await openSpace(library);
  const job = new Job(space, connection);
  leaveAtExit(job, space);
  return job;
}

async function openSpace(library: string | undefined): Promise<KeyValueSpace> {
  const { PMIX_NAMESPACE, SLURM_STEP_NUM_TASKS } = process.env;
  if (PMIX_NAMESPACE !== undefined) return await PmixSpace.join(library);
  if (Number(SLURM_STEP_NUM_TASKS) > 1) {
    // Each would take itself for a job of one, and none would find another.
    throw new RdmaError(
      'ERR_RDMA_NO_PMIX',
      'srun gives its tasks no way to find each other: start them with --mpi=pmix',
    );
  }
  return new SoloSpace();
}

/** A rank that fails must not leave the others waiting for it. */
function leaveAtExit(job: Job, space: KeyValueSpace): void {
  let failure = '';
  process.on('uncaughtExceptionMonitor', (error) => {
    failure = `: ${inspect(error)}`;
  });
  process.once('exit', (status) => {
    if (job.left) return;
    if (status === 0) space.finalizeSync();
    else space.abort(status, `rank ${job.rank} of ${job.size} exits with status ${status}${failure}`);
  });
}
