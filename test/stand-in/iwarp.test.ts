import { describeStandIn } from './suite.js';

describeStandIn('iwarp');
