import { Command } from 'commander';
import { exitStatus } from '../exit-status.js';
import { Output } from '../output.js';
import { diagnose, usable } from './diagnosis.js';
import { inspectHost } from './host-inspection.js';
import { report } from './report.js';

/** `node-rdma devices`. */
export function devicesCommand(): Command {
  return new Command('devices')
    .summary('what RDMA this host has, and what it lacks')
    .description(
      'Shows the RDMA devices of this host, what works on them, and what is missing, with its cure.',
    )
    .option('--json', 'one JSON object: the host, what is wrong with it, and whether it is usable')
    .addHelpText(
      'after',
      `
Examples:
  node-rdma devices
  node-rdma devices --json | jq -r '.findings[].cure'

Exit status: 0 a connection can be made over one device at least, 1 over none.`,
    )
    .action(async ({ json = false }: { json?: boolean }) => {
      const host = await inspectHost();
      const findings = diagnose(host);
      const ready = usable(host);
      const output = new Output(json);
      output.person(report(host, findings));
      output.machine({ usable: ready, findings, host });
      process.exitCode = ready ? exitStatus.success : exitStatus.failure;
    });
}
