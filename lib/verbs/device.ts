import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import type { NativeDeviceAttributes, NativeDeviceSummary, NativePortAttributes } from '../binding/verbs.js';
import { invalidArgumentType, requireInteger } from '../errors.js';

/** `iwarp` (RFC 5040 over TCP), or `infiniband` for InfiniBand and RoCE: what `ibv_transport_type` says. */
export type Transport = 'iwarp' | 'infiniband' | 'unknown';

export interface DeviceSummary {
  /** For example `siw0`. */
  name: string;
  /** Kernel driver, for example `siw`, `rxe`, `mlx5_core`. */
  driver: string;
  transport: Transport;
  /** Node GUID as 16 hexadecimal digits. */
  guid: string;
}

/** `ibv_query_device(3)`. */
export type DeviceAttributes = NativeDeviceAttributes;
export type PortState = 'nop' | 'down' | 'init' | 'armed' | 'active' | 'active-defer' | 'unknown';

/** `ibv_query_port(3)`. */
export interface PortAttributes
  extends Omit<NativePortAttributes, 'state' | 'maxMtu' | 'activeMtu' | 'linkLayer'> {
  state: PortState;
  /** Bytes. */
  maxMtu: number;
  /** Bytes. */
  activeMtu: number;
  linkLayer: 'unspecified' | 'infiniband' | 'ethernet';
}

const portStates: readonly PortState[] = ['nop', 'down', 'init', 'armed', 'active', 'active-defer'];
const linkLayers = ['unspecified', 'infiniband', 'ethernet'] as const;

function summarise({ name, driver, transport, guid }: NativeDeviceSummary): DeviceSummary {
  return {
    name,
    driver,
    guid,
    transport: transport === 1 ? 'iwarp' : transport === 0 ? 'infiniband' : 'unknown',
  };
}

/** What the device can do, known before it is tried. Limits are the device's own. */
export interface DeviceCapabilities {
  transport: Transport;
  /** Immediate data with Send and Write. */
  immediateData: boolean;
  atomics: boolean;
  /** Whether the sink of a Read needs REMOTE_WRITE access (iWARP: RFC 5040 §5.3). */
  readSinkNeedsRemoteWrite: boolean;
  /** Whether a Send without a posted receive is retried (RNR) instead of ending the connection. */
  receiverNotReady: boolean;
  /** Most gather elements of a Read. */
  maxSgeRead: number;
  maxSge: number;
  /** Bytes of private data that `connect` and `accept` take. */
  connectPrivateData: number;
  acceptPrivateData: number;
  rejectPrivateData: number;
}

/** An RDMA device of this host: `ibv_context`. */
export class Device extends NativeObject {
  readonly name: string;
  readonly driver: string;
  readonly transport: Transport;
  #attributes: DeviceAttributes | undefined;

  /** The devices of this host: `ibv_get_device_list(3)`. */
  static list(): DeviceSummary[] {
    return useBinding().native.listDevices().map(summarise);
  }

  /** Opens a device by name; `ENODEV` when there is none. */
  static open(name: string): Device {
    if (typeof name !== 'string') throw invalidArgumentType('name', 'a string', name);
    return new Device(useBinding().native.openDevice(name));
  }

  /** @internal Takes a native handle over. */
  constructor(handle: number, owned = true) {
    const { native } = useBinding();
    const summary = summarise(native.describeDevice(requireInteger('handle', handle, 1, 0xffff_ffff)));
    super('Device', 0, handle, (device) => native.closeDevice(device), [], owned);
    this.name = summary.name;
    this.driver = summary.driver;
    this.transport = summary.transport;
  }

  /** `ibv_query_device(3)`, asked once. */
  get attributes(): DeviceAttributes {
    this.#attributes ??= useBinding().native.queryDevice(this.handle);
    return this.#attributes;
  }

  get capabilities(): DeviceCapabilities {
    const iwarp = this.transport === 'iwarp';
    return {
      transport: this.transport,
      immediateData: !iwarp,
      atomics: this.attributes.atomicCap > 0,
      readSinkNeedsRemoteWrite: iwarp,
      receiverNotReady: !iwarp,
      maxSgeRead: this.attributes.maxSgeRd,
      maxSge: this.attributes.maxSge,
      // siw keeps the length in a u8 and adds 4 bytes of its own; InfiniBand: CM REQ, REP and REJ messages.
      connectPrivateData: iwarp ? 251 : 56,
      acceptPrivateData: iwarp ? 251 : 196,
      rejectPrivateData: iwarp ? 251 : 148,
    };
  }

  /** `ibv_query_port(3)`; ports count from 1. */
  queryPort(port = 1): PortAttributes {
    const attributes = useBinding().native.queryPort(this.handle, requireInteger('port', port, 1, 255));
    return {
      ...attributes,
      state: portStates[attributes.state] ?? 'unknown',
      maxMtu: 128 << attributes.maxMtu,
      activeMtu: 128 << attributes.activeMtu,
      linkLayer: linkLayers[attributes.linkLayer] ?? 'unspecified',
    };
  }

  /** `ibv_query_gid(3)`: 16 bytes. */
  queryGid(port: number, index: number): Uint8Array {
    requireInteger('port', port, 1, 255);
    return useBinding().native.queryGid(this.handle, port, requireInteger('index', index, 0, 0x7fff_ffff));
  }
}
