export type { NativeAddressInfo as AddressInfo } from '../binding/cm.js';
export { RdmaError } from '../errors.js';
export { getAddressInfo } from './address-info.js';
export { type CmAddress, CmId, type CmIdEvents, type PortSpace } from './cm-id.js';
export { type CmEvent, type CmEventName, type ConnectionParameters, eventError } from './event.js';
export { EventChannel } from './event-channel.js';
