import { Command, Option } from 'commander';
import { Output } from '../output.js';
import { table } from '../table.js';
import type { SoftDriver } from './modules.js';
import { addSoftDevice, listSoftDevices, removeSoftDevice } from './soft-device.js';

interface Flags {
  json?: boolean;
}

interface AddFlags extends Flags {
  type: SoftDriver;
}

function outputOf({ json = false }: Flags): Output {
  return new Output(json);
}

async function add(name: string, netdev: string, flags: AddFlags): Promise<void> {
  const device = await addSoftDevice(name, flags.type, netdev);
  const output = outputOf(flags);
  output.person(`${device.name} is there: ${device.driver} on ${device.netdev}, ${device.state}`);
  output.machine(device);
}

async function remove(name: string, flags: Flags): Promise<void> {
  await removeSoftDevice(name);
  const output = outputOf(flags);
  output.person(`${name} is gone`);
  output.machine({ removed: name });
}

async function list(flags: Flags): Promise<void> {
  const devices = await listSoftDevices();
  const output = outputOf(flags);
  if (devices.length === 0) output.person('no soft devices; node-rdma soft add NAME NETDEV makes one');
  else {
    const rows = devices.map(({ name, driver, netdev, state }) => [name, driver, netdev ?? '-', state]);
    output.person(table([['Device', 'Driver', 'Netdev', 'State'], ...rows]));
  }
  output.machine(devices);
}

/** `node-rdma soft`. */
export function softCommand(): Command {
  const json = ['--json', 'one JSON value'] as const;
  return new Command('soft')
    .summary('make an RDMA device of a network device: siw or rxe')
    .description(
      'Soft devices: siw (iWARP) and rxe (RoCE) over an ordinary network device. Uses rdma(8) of iproute2.',
    )
    .addCommand(
      new Command('add')
        .summary('make one')
        .description('Makes a soft device on a network device, and loads the kernel module for it.')
        .argument('<name>', 'name of the new device, for example siw0')
        .argument('<netdev>', 'network device, for example eth0')
        .addOption(new Option('-t, --type <driver>', 'what to make').choices(['siw', 'rxe']).default('siw'))
        .option(...json)
        .addHelpText('after', '\nExample:\n  sudo node-rdma soft add rxe0 eth0 --type rxe')
        .action(add),
    )
    .addCommand(
      new Command('remove')
        .summary('remove one')
        .description('Removes a soft device. Waits until no process has it open.')
        .argument('<name>')
        .option(...json)
        .action(remove),
    )
    .addCommand(
      new Command('list')
        .summary('those that are there')
        .description('Lists the soft devices of this host.')
        .option(...json)
        .action(list),
    );
}
