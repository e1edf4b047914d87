import { invalidArgumentType } from '../errors.js';
import { type PrivateDataMessage, privateDataLimit } from '../peer-to-peer/header.js';
import { Device, type DeviceCapabilities } from '../verbs/index.js';

/** What a device can do, and what is left of it for a connection. */
export interface Capabilities extends DeviceCapabilities {
  /** Bytes of private data that are the program's own on a connection with `peerToPeer` or `flowControl`. */
  readonly negotiated: Readonly<Record<PrivateDataMessage, number>>;
}

export function capabilitiesOf(device: Device): Capabilities {
  const transport = device.transport === 'iwarp' ? 'iwarp' : 'infiniband';
  const left = (message: PrivateDataMessage) => privateDataLimit(transport, message, true);
  return {
    ...device.capabilities,
    negotiated: { connect: left('connect'), accept: left('accept'), reject: left('reject') },
  };
}

/**
 * What a device can do, by its name as in `Device.list()`: `ibv_query_device(3)`. What it can't do fails with
 * `ENOTSUP`.
 *
 * @throws `ENODEV` when there is no such device, `ERR_RDMA_UNAVAILABLE` without the RDMA libraries
 */
export function capabilities(name: string): Capabilities {
  if (typeof name !== 'string') throw invalidArgumentType('name', 'a string', name);
  const device = Device.open(name);
  try {
    return capabilitiesOf(device);
  } finally {
    void device.close();
  }
}
