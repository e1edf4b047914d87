import { useBinding } from '../binding/addon.js';

/**
 * `rdma_get_devices(3)`: names of the devices that rdma_cm can use, for `Device.open()`. Throws `ENODEV` where there is
 * none.
 */
export function getDevices(): string[] {
  return useBinding().native.getDevices();
}
