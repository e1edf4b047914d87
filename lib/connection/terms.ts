import type { CmEvent } from '../cm/index.js';
import type { Terms } from '../peer-to-peer/negotiation.js';
import type { Endpoint } from './endpoint.js';
import type { ConnectionSettings } from './options.js';

/** What this side brings to a negotiation. */
export function termsOf(endpoint: Endpoint, settings: ConnectionSettings): Terms {
  return {
    responderResources: endpoint.responderResources,
    initiatorDepth: endpoint.initiatorDepth,
    flowControl: settings.flowControl,
    receiveCredits: settings.receiveDepth,
    maxMessageSize: settings.maxMessageSize,
    rkey: endpoint.domain.page.rkey,
  };
}

/** Whether RDMA Reads can be posted; siw, irdma and qedr exchange the two depths of the event. */
export function canRead({ initiatorDepth, responderResources }: CmEvent): boolean {
  return initiatorDepth > 0 && responderResources > 0;
}
