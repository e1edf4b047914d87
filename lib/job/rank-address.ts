import { BlockList, isIP } from 'node:net';
import { interfaceAddresses } from '../connection/interface-addresses.js';

/** Where a rank listens. */
export interface RankAddress {
  readonly address: string;
  readonly port: number;
}

/** What a rank publishes of itself. */
export interface RankCard {
  /** Hexadecimal. */
  readonly token: string;
  readonly addresses: readonly RankAddress[];
}

/** Addresses of this host that another one could reach; whether RDMA does is for the caller to find out. */
export function localAddresses(): string[] {
  // A link-local address means nothing to another host.
  return interfaceAddresses()
    .filter(
      ({ internal, family, address }) => !internal && !(family === 'IPv6' && /^fe[89ab]/i.test(address)),
    )
    .map(({ address }) => address);
}

export function encodeCard(card: RankCard): Uint8Array {
  return Buffer.from(JSON.stringify(card));
}

/** @throws for what is no card */
export function decodeCard(bytes: Uint8Array): RankCard {
  const { token, addresses } = JSON.parse(Buffer.from(bytes).toString()) as Partial<RankCard>;
  const valid =
    typeof token === 'string' &&
    Array.isArray(addresses) &&
    addresses.every(
      (each: Partial<RankAddress>) => isIP(each.address ?? '') !== 0 && Number.isInteger(each.port),
    );
  if (!valid) throw new TypeError('what the rank has published of itself makes no sense');
  return { token, addresses };
}

/** The addresses in the order to try them in: those first that are on a network of this host's. */
export function byReach(addresses: readonly RankAddress[]): RankAddress[] {
  const near = new BlockList();
  for (const { cidr } of interfaceAddresses()) {
    const [network, prefix] = cidr?.split('/') ?? [];
    if (network !== undefined && prefix !== undefined) {
      near.addSubnet(network, Number(prefix), isIP(network) === 6 ? 'ipv6' : 'ipv4');
    }
  }
  const isNear = ({ address }: RankAddress) => near.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return [...addresses.filter(isNear), ...addresses.filter((each) => !isNear(each))];
}
