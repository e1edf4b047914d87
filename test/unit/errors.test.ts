import { RdmaError, WorkCompletionError } from 'node-rdma';
import { describe, expect, test } from 'vitest';
import {
  closedError,
  errnoName,
  invalidArgumentType,
  invalidArgumentValue,
  requireInteger,
  requireOneOf,
  requireOptions,
  systemError,
} from '#lib/errors.js';

describe('the error of a failed C call', () => {
  test('has the shape of the system errors of Node', () => {
    const error = systemError(111, 'rdma_connect', { address: '10.0.0.1', port: 7471 });
    expect(error).toBeInstanceOf(RdmaError);
    expect(error).toMatchObject({
      name: 'RdmaError',
      message: 'rdma_connect ECONNREFUSED 10.0.0.1:7471',
      code: 'ECONNREFUSED',
      errno: -111,
      syscall: 'rdma_connect',
      address: '10.0.0.1',
      port: 7471,
    });
  });

  test('puts brackets around an IPv6 address with a port', () => {
    expect(systemError(110, 'x', { address: 'fe80::1%eth0', port: 1 }).message).toBe(
      'x ETIMEDOUT [fe80::1%eth0]:1',
    );
    expect(systemError(110, 'x', { address: 'fe80::1' }).message).toBe('x ETIMEDOUT fe80::1');
  });

  test('takes an errno of either sign', () => {
    for (const errno of [22, -22])
      expect(systemError(errno, 'x')).toMatchObject({ code: 'EINVAL', errno: -22 });
  });

  test("takes the kernel's own ENOTSUPP, which some calls let out, for what it means", () => {
    expect(systemError(524, 'x')).toMatchObject({ code: 'ENOTSUP', errno: -95, message: 'x ENOTSUP' });
  });

  test('names an errno that has two names as Node does, and one that has none', () => {
    expect([errnoName(11), errnoName(95), errnoName(99_999)]).toEqual(['EAGAIN', 'ENOTSUP', 'EUNKNOWN']);
  });

  test('says how to cure what a person can cure', () => {
    expect(systemError(12, 'ibv_reg_mr').message).toContain('ulimit -l');
    expect(systemError(19, 'ibv_open_device').message).toContain('rdma link');
    expect(systemError(2, 'rdma_create_event_channel').message).toContain('modprobe rdma_ucm');
  });

  test('keeps its cause, and has none when none was given', () => {
    const cause = new Error('deeper');
    expect(systemError(5, 'x', { cause }).cause).toBe(cause);
    expect('cause' in systemError(5, 'x')).toBe(false);
  });
});

test('a failed work completion tells its status, opcode and vendor error', () => {
  const error = new WorkCompletionError('RETRY_EXC_ERR', 'send', 129);
  expect(error).toBeInstanceOf(RdmaError);
  expect(error).toMatchObject({
    name: 'WorkCompletionError',
    code: 'ERR_RDMA_WC_RETRY_EXC_ERR',
    status: 'RETRY_EXC_ERR',
    opcode: 'send',
    vendorError: 129,
    message: 'send failed: RETRY_EXC_ERR (vendor error 129)',
  });
});

test('use after close names what is closed', () => {
  expect(closedError('QueuePair')).toMatchObject({
    code: 'ERR_RDMA_CLOSED',
    message: 'The QueuePair is closed',
  });
});

describe('checks of arguments', () => {
  test('an integer in range passes through', () => {
    expect(requireInteger('x', 7, 0, 7)).toBe(7);
  });

  test('what is no number is a TypeError, a number outside a RangeError', () => {
    for (const value of ['7', null, undefined, {}, 7n]) {
      expect(() => requireInteger('x', value, 0, 7)).toThrow(TypeError);
    }
    for (const value of [-1, 8, 0.5, Number.NaN, Infinity]) {
      expect(() => requireInteger('x', value, 0, 7)).toThrow(RangeError);
    }
  });

  test('options may be left out, and are an object otherwise', () => {
    expect(requireOptions('options', undefined)).toBeUndefined();
    for (const value of [null, 1, 'x', []]) {
      expect(() => requireOptions('options', value as never)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
      );
    }
  });

  test('one of several names is one of them', () => {
    expect(requireOneOf('x', 'b', ['a', 'b'])).toBe('b');
    expect(() => requireOneOf('x', 1, ['a'])).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
    expect(() => requireOneOf('x', 'c', ['a'])).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
    );
  });

  test('the message shows any value, however odd', () => {
    const shown = [null, undefined, Symbol('s'), 1n, {}, [], () => {}, Object.create(null), 'x'.repeat(1000)];
    for (const value of shown) {
      expect(invalidArgumentType('x', 'a string', value).message.length).toBeLessThan(160);
      expect(invalidArgumentValue('x', value, 'must be good').code).toBe('ERR_INVALID_ARG_VALUE');
    }
  });
});
