export type { Failing } from './failures.js';
export { StandIn, type StandInOptions, useStandIn } from './stand-in.js';
