/**
 * `rdma_port_space`, `rdma_create_id(3)`: `TCP` for connections; `UDP` for datagrams and multicast; `IPOIB` for
 * datagrams and multicast among the hosts of an IPoIB network; `IB` for connections within InfiniBand's own port space.
 * The connections of `UDP` and `IPOIB` are address look-ups (IBTA: service id resolution); iWARP has none of them.
 */
export type PortSpace = 'TCP' | 'UDP' | 'IPOIB' | 'IB';

export const portSpaces: Readonly<Record<PortSpace, number>> = {
  TCP: 0x0106,
  UDP: 0x0111,
  IPOIB: 0x0002,
  IB: 0x013f,
};

/** The queue pairs that librdmacm makes for ids of this port space. */
export function queuePairTypeOf(portSpace: PortSpace): 'RC' | 'UD' {
  return portSpace === 'UDP' || portSpace === 'IPOIB' ? 'UD' : 'RC';
}
