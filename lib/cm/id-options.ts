import { invalidArgumentType, requireInteger, requireOptions } from '../errors.js';

/** `rdma_set_option(3)`, level `RDMA_OPTION_ID`. What is left out stays as it is. */
export interface CmIdOptions {
  /** Type of service, 0 to 255 (RFC 2474): of the packets of the connection. Before `resolveAddress()`. */
  typeOfService?: number;
  /** Lets several ids bind the same address, as `SO_REUSEADDR`; one of them listens. Before `bind()`. */
  reuseAddress?: boolean;
  /** An id that is bound to `::` takes no IPv4 connections, as `IPV6_V6ONLY`. Before `bind()`. */
  addressFamilyOnly?: boolean;
  /**
   * How long the queue pair waits for an acknowledgement before it sends again: 4.096 µs × 2 to this power, 0 to 31.
   * Before `connect()`, and in the TCP and IB port spaces only (`EINVAL`). Without effect on iWARP.
   */
  acknowledgeTimeout?: number;
}

const RDMA_OPTION_ID_TOS = 0;
const RDMA_OPTION_ID_REUSEADDR = 1;
const RDMA_OPTION_ID_AFONLY = 2;
const RDMA_OPTION_ID_ACK_TIMEOUT = 3;

function numberOf(options: CmIdOptions, name: 'typeOfService' | 'acknowledgeTimeout', max: number) {
  const value = options[name];
  return value === undefined ? undefined : requireInteger(`options.${name}`, value, 0, max);
}

function flagOf(options: CmIdOptions, name: 'reuseAddress' | 'addressFamilyOnly') {
  const value = options[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'boolean') throw invalidArgumentType(`options.${name}`, 'a boolean', value);
  return Number(value);
}

/** The options that are there, by their numbers. All are checked before the first is set. */
export function checkIdOptions(options: CmIdOptions): [option: number, value: number][] {
  if (options === undefined) throw invalidArgumentType('options', 'an object', options);
  requireOptions('options', options);
  const values = [
    [RDMA_OPTION_ID_TOS, numberOf(options, 'typeOfService', 255)],
    [RDMA_OPTION_ID_REUSEADDR, flagOf(options, 'reuseAddress')],
    [RDMA_OPTION_ID_AFONLY, flagOf(options, 'addressFamilyOnly')],
    [RDMA_OPTION_ID_ACK_TIMEOUT, numberOf(options, 'acknowledgeTimeout', 31)],
  ] as const;
  return values.flatMap(([option, value]) => (value === undefined ? [] : [[option, value]]));
}
