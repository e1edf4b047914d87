import { constants } from 'node:os';
import { invalidArgumentValue } from '../errors.js';
import { opcodes } from '../verbs/opcode.js';
import { statusOf } from '../verbs/status.js';

/** What can be made to fail: a call, by an errno's name, or a work request, by the name of its status. */
export type Failing = 'connect' | 'listen' | 'allocate' | 'send' | 'write' | 'read';

const calls: readonly Failing[] = ['connect', 'listen', 'allocate'];

/** Failures that were asked for, and have not happened yet. */
export class Failures {
  readonly #waiting = new Map<Failing, number[]>();

  /** @throws TypeError for a code that is no errno's name, or no status of a completion */
  add(what: Failing, code: string): void {
    const errnos: Readonly<Record<string, number>> = constants.errno;
    const number = calls.includes(what) ? errnos[code] : statusOf(code);
    if (number === undefined)
      throw invalidArgumentValue(
        'code',
        code,
        calls.includes(what)
          ? "must be an errno's name, as ECONNREFUSED"
          : 'must be a status, as RETRY_EXC_ERR',
      );
    this.#waiting.set(what, [...(this.#waiting.get(what) ?? []), number]);
  }

  /** The errno that this call is to fail with. */
  takeCall(what: 'connect' | 'listen' | 'allocate'): number | undefined {
    return this.#waiting.get(what)?.shift();
  }

  /** The status that this request is to complete with. */
  takeRequest(opcode: number): number | undefined {
    const what = (['send', 'write', 'read'] as const).find((name) => opcodes[name] === opcode);
    return what === undefined ? undefined : this.#waiting.get(what)?.shift();
  }
}
