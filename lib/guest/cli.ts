import { runGuestCommand } from './command.js';

process.exitCode = await runGuestCommand(process.argv.slice(2), 'vm');
