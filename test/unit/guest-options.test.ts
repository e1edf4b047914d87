import { expect, test } from 'vitest';
import { parseOptions } from '#lib/guest/options.js';

const parse = (argv: string[], environment: Record<string, string> = {}) => {
  const options = parseOptions(argv, environment);
  if (options === 'help') throw new Error('asked for help');
  return options;
};

test('everything has a default but the command', () => {
  expect(parse(['--', 'rdma', 'link'])).toEqual({
    command: ['rdma', 'link'],
    memory: 4096,
    cpus: 2,
    timeLimit: 600,
    shares: [],
    kernelPeerToPeer: false,
    environment: {},
    hosts: 0,
    shape: {},
  });
});

test('what follows the separator is left to the command', () => {
  expect(parse(['--cpus', '1', '--', 'node', '--help', '--', '--cpus']).command).toEqual([
    'node',
    '--help',
    '--',
    '--cpus',
  ]);
});

test('a wire between hosts takes a delay, a loss and a slot', () => {
  const options = parse(['--hosts', '3', '--delay', '0.5', '--loss', '1', '--slot', '4 6', '--', 'true']);
  expect(options.hosts).toBe(3);
  expect(options.shape).toEqual({ delay: 0.5, loss: 1, slot: [4, 6] });
});

test('a shared folder is told by its absolute path', () => {
  expect(parse(['--share', '/tmp/../tmp/results', '--', 'true']).shares).toEqual(['/tmp/results']);
});

test('only the named part of the environment is passed on', () => {
  const environment = { HOME: '/home/me', CI: '1', SECRET: 'x', DEBUG: 'rdma' };
  const options = parse(['--env', 'DEBUG', '--env', 'MODE=a=b', '--env', 'UNSET', '--', 'true'], environment);
  expect(options.environment).toEqual({ HOME: '/home/me', CI: '1', DEBUG: 'rdma', MODE: 'a=b' });
});

test('help is asked for before the separator only', () => {
  expect(parseOptions(['--help'], {})).toBe('help');
  expect(parse(['--', 'node', '--help']).command).toEqual(['node', '--help']);
});

test.each([
  [[], /no command/],
  [['--'], /no command/],
  [['rdma', 'link'], /no command|positional/],
  [['--memory', 'much', '--', 'true'], /--memory takes a whole number/],
  [['--memory', '1', '--', 'true'], /--memory takes a whole number from 512/],
  [['--cpus', '1.5', '--', 'true'], /--cpus takes a whole number/],
  [['--time-limit', '0', '--', 'true'], /--time-limit/],
  [['--hosts', '1', '--', 'true'], /--hosts/],
  [['--delay', '20', '--', 'true'], /need --hosts/],
  [['--hosts', '2', '--loss', '101', '--', 'true'], /--loss takes a number from 0 to 100/],
  [['--hosts', '2', '--slot', '6 4', '--', 'true'], /--slot/],
  [['--hosts', '2', '--slot', '6', '--', 'true'], /--slot/],
  [['--env', '1X=2', '--', 'true'], /--env takes NAME/],
  [['--unknown', '--', 'true'], /unknown/i],
])('%j is refused with what is wrong about it', (argv, message) => {
  expect(() => parseOptions(argv, {})).toThrow(message);
});
