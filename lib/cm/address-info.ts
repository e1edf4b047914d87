import { useBinding } from '../binding/addon.js';
import type { NativeAddressInfo } from '../binding/cm.js';
import { invalidArgumentType, requireOptions } from '../errors.js';

const RAI_PASSIVE = 1;
const RAI_NUMERICHOST = 2;
const tcpPortSpace = 0x0106;

/** `rdma_getaddrinfo(3)`, off the event loop. */
export async function getAddressInfo(
  node: string | null,
  service: string | null,
  options: { passive?: boolean; numeric?: boolean } = {},
): Promise<NativeAddressInfo[]> {
  requireOptions('options', options);
  for (const [name, value] of Object.entries({ node, service })) {
    if (value !== null && typeof value !== 'string')
      throw invalidArgumentType(name, 'a string or null', value);
  }
  const flags =
    (options.passive === true ? RAI_PASSIVE : 0) | (options.numeric === true ? RAI_NUMERICHOST : 0);
  return useBinding().native.getAddressInfo(node, service, { flags, family: 0, portSpace: tcpPortSpace });
}
