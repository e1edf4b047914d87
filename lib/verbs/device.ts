import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import type {
  NativeDeviceAttributes as DeviceAttributes,
  NativeExtendedDeviceAttributes as ExtendedDeviceAttributes,
  NativeDeviceSummary,
  NativePortAttributes,
} from '../binding/verbs.js';
import { invalidArgumentType, requireInteger } from '../errors.js';
import { type AsyncEvents, asyncEvents, type DeviceEventName } from './async-event.js';
import { capabilitiesOf, type DeviceCapabilities } from './capabilities.js';

/** `iwarp` (RFC 5040 over TCP), or `infiniband` for InfiniBand and RoCE: what `ibv_transport_type` says. */
export type Transport = 'iwarp' | 'infiniband' | 'unknown';

/** What is known of a device without opening it. */
export interface DeviceSummary {
  /** For example `siw0`. */
  name: string;
  /** Kernel driver, for example `siw`, `rxe`, `mlx5_core`. */
  driver: string;
  transport: Transport;
  /** Node GUID as 16 hexadecimal digits. */
  guid: string;
}

/** `ibv_port_state`, in lower case. */
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

const gidTypes = ['infiniband', 'roce-1', 'roce-2'] as const;

/** `ibv_gid_entry`. */
export interface GidEntry {
  /** 16 bytes. */
  gid: Uint8Array;
  type: (typeof gidTypes)[number] | 'unknown';
  /** Index of the network interface behind it; 0 for none. */
  interfaceIndex: number;
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

/** An RDMA device of this host: `ibv_context`. */
export class Device extends NativeObject {
  readonly name: string;
  readonly driver: string;
  readonly transport: Transport;
  readonly #handle: number;
  #attributes: DeviceAttributes | undefined;
  #extendedAttributes: ExtendedDeviceAttributes | undefined;
  #capabilities: DeviceCapabilities | undefined;
  #events: AsyncEvents<DeviceEventName> | undefined;

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
    this.#handle = handle;
    this.name = summary.name;
    this.driver = summary.driver;
    this.transport = summary.transport;
  }

  /** `ibv_query_device(3)`, asked once. */
  get attributes(): DeviceAttributes {
    this.#attributes ??= useBinding().native.queryDevice(this.handle);
    return this.#attributes;
  }

  /** `ibv_query_device_ex(3)`, asked once. */
  get extendedAttributes(): ExtendedDeviceAttributes {
    this.#extendedAttributes ??= useBinding().native.queryDeviceExtended(this.handle);
    return this.#extendedAttributes;
  }

  /** `port-active`, `port-err`, `device-fatal` and others of the device as a whole: `ibv_get_async_event(3)`. */
  get events(): AsyncEvents<DeviceEventName> {
    this.#events ??= asyncEvents(this.#handle);
    return this.#events;
  }

  /** What the device and its provider can do. What they cannot is `ENOTSUP` when it is tried. */
  get capabilities(): DeviceCapabilities {
    this.#capabilities ??= capabilitiesOf(this);
    return this.#capabilities;
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

  /** One entry of a port's GID table with its type: `ibv_query_gid_ex(3)`. Throws `ENODATA` for an empty one. */
  queryGidEntry(port: number, index: number): GidEntry {
    requireInteger('port', port, 1, 255);
    requireInteger('index', index, 0, 0x7fff_ffff);
    const { type, ...entry } = useBinding().native.queryGidEntry(this.handle, port, index);
    return { ...entry, type: gidTypes[type] ?? 'unknown' };
  }

  /** One entry of a port's P_Key table, 16 bits: `ibv_query_pkey(3)`. */
  queryPkey(port: number, index: number): number {
    requireInteger('port', port, 1, 255);
    requireInteger('index', index, 0, 0x7fff_ffff);
    return useBinding().native.queryPkey(this.handle, port, index);
  }

  /** @internal Bits of the completion fields that an extended completion queue has here. */
  get completionFieldBits(): number {
    return useBinding().native.queryCompletionFields(this.handle);
  }
}
