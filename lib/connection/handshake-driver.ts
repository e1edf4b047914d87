import type { ActiveEvent } from '../peer-to-peer/active.js';
import { ActiveHandshake } from '../peer-to-peer/active.js';
import type {
  Action,
  CommonEvent,
  Handshake,
  PeerToPeerSummary,
  Request,
  Step,
  Timer,
} from '../peer-to-peer/handshake.js';
import type { Transport } from '../peer-to-peer/header.js';
import type { Agreement } from '../peer-to-peer/negotiation.js';
import type { PeerToPeer } from '../peer-to-peer/options.js';
import { type PassiveEvent, PassiveHandshake, type PassiveOptions } from '../peer-to-peer/passive.js';

/** What carries out the actions of a handshake. */
export interface HandshakeHost {
  /** Posts a request of the handshake's; `completed()` has to be called when it succeeds. */
  postHandshake(request: Request): void;
  handshakeEstablished(): void;
  handshakeReleased(): void;
  handshakeFailed(error: Error): void;
  handshakeStep(step: Step, at: number): void;
}

const warned = new Set<string>();

/** Runs a handshake's state machine: gives it the events with their time, and has its actions carried out. */
export abstract class HandshakeDriver<Event extends { type: string; at: number }> {
  readonly #machine: Handshake<Event>;
  readonly #host: HandshakeHost;
  readonly #timers = new Map<Timer, NodeJS.Timeout>();
  #stopped = false;

  constructor(machine: Handshake<Event>, host: HandshakeHost) {
    this.#machine = machine;
    this.#host = host;
  }

  /** Nothing that happens matters to it any more. */
  get settled(): boolean {
    return this.#stopped || this.#machine.settled;
  }

  get summary(): PeerToPeerSummary {
    return this.#machine.summary;
  }

  /** A receive completed; whether it was GO and is no message. */
  abstract received(length: number): boolean;

  /** Something waits for the release. */
  abstract queued(): void;

  abstract releaseSends(): void;

  /** The connection has ended: the machine notes it, and no timer of it fires any more. */
  stop(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    for (const action of this.#machine.step({ type: 'failed', error, at: performance.now() })) {
      if (action.type === 'step') this.#host.handshakeStep(action.step, action.at);
    }
  }

  /** Whether the machine took the receive that it was told of for itself. */
  protected dispatch(event: CommonEvent | Event): boolean {
    let swallowed = false;
    for (const action of this.#machine.step(event)) {
      // An action may have let the user end the connection.
      if (this.#stopped) break;
      if (action.type === 'swallow') swallowed = true;
      else this.#carryOut(action);
    }
    return swallowed;
  }

  #carryOut(action: Exclude<Action, { type: 'swallow' }>): void {
    switch (action.type) {
      case 'established':
        this.#host.handshakeEstablished();
        break;
      case 'post':
        this.#host.postHandshake(action.request);
        break;
      case 'release':
        this.#host.handshakeReleased();
        break;
      case 'arm':
        this.#arm(action.timer, action.delay);
        break;
      case 'disarm':
        clearTimeout(this.#timers.get(action.timer));
        this.#timers.delete(action.timer);
        break;
      case 'warn':
        warnOnce(action.code, action.message);
        break;
      case 'fail':
        this.#host.handshakeFailed(action.error);
        break;
      case 'step':
        this.#host.handshakeStep(action.step, action.at);
        break;
    }
  }

  #arm(timer: Timer, delay: number): void {
    const fire = () => {
      this.#timers.delete(timer);
      this.dispatch({ type: 'timer', timer, at: performance.now() });
    };
    this.#timers.set(timer, setTimeout(fire, delay).unref());
  }
}

function warnOnce(code: string, message: string): void {
  if (warned.has(code)) return;
  warned.add(code);
  process.emitWarning(message, { type: 'RdmaWarning', code });
}

export class ActiveDriver extends HandshakeDriver<ActiveEvent> {
  constructor(options: PeerToPeer | null, transport: Transport, host: HandshakeHost) {
    super(new ActiveHandshake(options, transport), host);
  }

  connecting(): void {
    this.dispatch({ type: 'connecting', at: performance.now() });
  }

  established(agreement: Agreement, initiatorDepth: number, responderResources: number): void {
    const at = performance.now();
    this.dispatch({ type: 'established', agreement, initiatorDepth, responderResources, at });
  }

  completed(request: Request): void {
    this.dispatch({ type: 'completed', request, at: performance.now() });
  }

  override received(): boolean {
    return this.dispatch({ type: 'received', at: performance.now() });
  }

  override queued(): void {}

  override releaseSends(): void {}
}

export class PassiveDriver extends HandshakeDriver<PassiveEvent> {
  constructor(options: PassiveOptions, host: HandshakeHost) {
    super(new PassiveHandshake(options), host);
  }

  accepted(): void {
    this.dispatch({ type: 'accepted', at: performance.now() });
  }

  established(): void {
    this.dispatch({ type: 'established', at: performance.now() });
  }

  override received(length: number): boolean {
    return this.dispatch({ type: 'received', length, at: performance.now() });
  }

  override queued(): void {
    this.dispatch({ type: 'queued', at: performance.now() });
  }

  override releaseSends(): void {
    this.dispatch({ type: 'releaseSends', at: performance.now() });
  }
}
