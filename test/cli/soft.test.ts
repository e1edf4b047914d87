import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeRdma, run } from './command.js';

const netdev = 'softwire0';

beforeAll(async () => {
  await run('ip', 'link', 'add', netdev, 'type', 'veth', 'peer', 'name', 'softwire1');
  await run('ip', 'link', 'set', netdev, 'up');
});
afterAll(() => run('ip', 'link', 'delete', netdev).then(() => {}));

async function soft(...args: string[]): Promise<unknown> {
  const { status, stdout, stderr } = await nodeRdma(['soft', ...args, '--json']);
  expect(status, stdout + stderr).toBe(0);
  return JSON.parse(stdout);
}

describe('node-rdma soft', () => {
  test.each(['siw', 'rxe'])('makes, lists and removes a %s device', async (driver) => {
    const made = { name: 'soft0', driver, netdev };
    expect(await soft('add', 'soft0', netdev, '--type', driver)).toMatchObject(made);
    expect(await soft('list')).toContainEqual(expect.objectContaining(made));
    expect(await soft('remove', 'soft0')).toEqual({ removed: 'soft0' });
    expect(await soft('list')).not.toContainEqual(expect.objectContaining({ name: 'soft0' }));
  });

  test('says what is wrong with a network device', async () => {
    const { status, stderr } = await nodeRdma(['soft', 'add', 'soft0', 'nowhere']);
    expect(status).toBe(1);
    expect(stderr).toContain('No such device');
  });

  test('says what soft devices there are when it is to remove another', async () => {
    const { status, stdout } = await nodeRdma(['soft', 'remove', 'nothing', '--json']);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'ENODEV', message: expect.stringContaining('siw0') },
    });
  });

  test('leaves making devices to root', async () => {
    const user = [
      'setpriv',
      '--reuid=65534',
      '--inh-caps=-all,+dac_read_search',
      '--ambient-caps=-all,+dac_read_search',
    ];
    const { status, stderr } = await nodeRdma(['soft', 'add', 'soft0', netdev], user);
    expect(status).toBe(1);
    expect(stderr).toContain('sudo');
  });
});
