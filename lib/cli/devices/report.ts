import { table } from '../table.js';
import type { DeviceLimits, Finding, Host, HostDevice, HostPort } from './host.js';

const heads = ['Device', 'Driver', 'Transport', 'Port', 'State', 'Netdev', 'Addresses'];

function transportName({ transport }: HostDevice, { linkLayer }: HostPort): string {
  if (transport === 'iwarp') return 'iWARP';
  if (transport === 'unknown') return 'unknown';
  return linkLayer === 'ethernet' ? 'RoCE' : 'InfiniBand';
}

function portRow(device: HostDevice, port: HostPort): string[] {
  const { number, state, netdev, addresses } = port;
  return [
    ...[device.name, device.driver, transportName(device, port), String(number), state],
    ...[netdev ?? '-', addresses.join(' ') || '-'],
  ];
}

function limitsText({ limits }: HostDevice): string {
  if (limits === undefined) return 'not known: it can not be opened';
  const { workRequests, gatherElements, gatherElementsOfRead, readsAtOnce, privateData } = limits;
  return (
    `${workRequests} work requests in a queue, ${gatherElements} pieces in one (${gatherElementsOfRead} in a Read), ` +
    `${readsAtOnce} Reads at once, ${privateData} bytes of private data`
  );
}

/** What a program can count on, in words: [what works, what does not]. */
function abilities({ transport }: HostDevice, limits: DeviceLimits): [string[], string[]] {
  const works = ['Send', 'RDMA Write', 'RDMA Read'];
  const lacks: string[] = [];
  const sort = (able: boolean, what: string) => (able ? works : lacks).push(what);
  sort(limits.immediateData, 'immediate data');
  sort(limits.atomics, 'atomics');
  sort(limits.receiverNotReady, 'waiting for a receive that is not posted yet');
  if (transport === 'iwarp') lacks.push('speaking first from the accepting side (without peerToPeer)');
  return [works, lacks];
}

function deviceLines(device: HostDevice): string[] {
  const lines = [['', 'limits', limitsText(device)]];
  if (device.limits !== undefined) {
    const [works, lacks] = abilities(device, device.limits);
    lines.push(['', 'works', works.join(', ')]);
    if (lacks.length > 0) lines.push(['', 'does not', lacks.join(', ')]);
  }
  return [device.name, table(lines)];
}

function findingLines({ severity, device, problem, cure }: Finding): string[] {
  return [`${severity}: ${device === undefined ? '' : `${device}: `}${problem}`, `  cure: ${cure}`];
}

/** The host as text: a table of ports, what each device can do, and what is wrong. */
export function report(host: Host, findings: readonly Finding[]): string {
  const { devices } = host;
  const ports = devices.flatMap((device) => device.ports.map((port) => portRow(device, port)));
  const parts = [
    ...(ports.length > 0 ? [table([heads, ...ports])] : []),
    ...devices.map((device) => deviceLines(device).join('\n')),
    findings.length > 0 ? findings.flatMap(findingLines).join('\n') : 'nothing is missing',
  ];
  return parts.join('\n\n');
}
