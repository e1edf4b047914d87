export type { WaitOptions } from '../connection/cancellation.js';
export { RankError, RanksUnreachableError } from './errors.js';
export { type ConnectAllOptions, Job, type JobEvents, type JobListenOptions } from './job.js';
export { joinJob } from './join.js';
export type { JoinOptions, RankConnectionOptions } from './options.js';
export type { RankAddress } from './rank-address.js';
