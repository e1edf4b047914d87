import { describeStandIn } from './suite.js';

describeStandIn('infiniband');
