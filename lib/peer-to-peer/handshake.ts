import type { Rtr } from './options.js';

/** A work request of the handshake itself: a 0-byte Read, Write or Send (GO), and the 0-byte Write that kicks. */
export type Request = 'read' | 'write' | 'go' | 'kick';

export type Timer = 'kick' | 'deadline' | 'held';

/** A point on the timeline of a connection. */
export type Step =
  | 'connecting'
  | 'accepted'
  | 'established'
  | `${Request}Posted`
  | `${Request}Completed`
  | 'goReceived'
  | 'held'
  | 'released'
  | 'failed';

/** What the owner of a handshake has to do, in this order. */
export type Action =
  /** Tell the user that the connection is established. */
  | { type: 'established' }
  /** Post this request, before any of the user's. Its completion comes back as an event. */
  | { type: 'post'; request: Request }
  /** Let the user's work requests flow, the queued ones first. */
  | { type: 'release' }
  /** The receive just reported is GO: no message of the user's. */
  | { type: 'swallow' }
  /** Report this timer in `delay` milliseconds. */
  | { type: 'arm'; timer: Timer; delay: number }
  | { type: 'disarm'; timer: Timer }
  | { type: 'warn'; code: string; message: string }
  /** End the connection and reject everything that is queued. */
  | { type: 'fail'; error: Error }
  /** Something happened that a diagnostics channel may tell. */
  | { type: 'step'; step: Step; at: number };

/** What became of the handshake of a connection. */
export interface PeerToPeerSummary {
  /** The active side asked for it: here, or in the request of the peer. */
  readonly requested: boolean;
  /** Both sides took part. */
  readonly negotiated: boolean;
  /** The request that went first; null as long as there is none. */
  readonly rtr: Rtr | null;
  /** A 0-byte Write was posted to free a lost wake-up. */
  readonly kicked: boolean;
  /** When each step was taken, in milliseconds on the clock of the events. */
  readonly times: Readonly<Partial<Record<Step, number>>>;
}

interface BaseEvent {
  /** Now, in milliseconds on a monotonic clock such as `performance.now()`. */
  at: number;
}

/** Events of both sides. */
export type CommonEvent = BaseEvent &
  (
    | { type: 'timer'; timer: Timer }
    /** The connection was lost, or a work request of the handshake failed. */
    | { type: 'failed'; error: Error }
  );

/** An event of one side only. */
export type Timed<Event> = BaseEvent & Event;

/**
 * What the two halves have in common: events in, actions out, and no input or output of their own. A settled
 * handshake has nothing more to say, whatever happens to the connection, and need not be told.
 */
export abstract class Handshake<Event extends BaseEvent & { type: string }> {
  #actions: Action[] = [];
  readonly #armed = new Set<Timer>();
  readonly #times: Partial<Record<Step, number>> = {};
  #now = 0;
  #released = false;
  #failed = false;

  /** Takes one event and tells what to do about it. */
  step(event: CommonEvent | Event): Action[] {
    if (this.settled) return [];
    this.#actions = [];
    this.#now = event.at;
    if (isCommon(event)) {
      if (event.type === 'failed') this.fail(event.error);
      // A timer may fire in the same turn in which it is disarmed.
      else if (this.#armed.delete(event.timer)) this.expire(event.timer);
    } else {
      this.react(event);
    }
    return this.#actions;
  }

  /** Sends flow. */
  get released(): boolean {
    return this.#released;
  }

  /** Nothing more will come of this handshake. */
  get settled(): boolean {
    return this.#failed || (this.#released && this.#armed.size === 0);
  }

  abstract get summary(): PeerToPeerSummary;

  protected abstract react(event: Event): void;
  protected abstract expire(timer: Timer): void;

  protected get times(): Readonly<Partial<Record<Step, number>>> {
    return { ...this.#times };
  }

  protected mark(step: Step): void {
    this.#times[step] = this.#now;
    this.act({ type: 'step', step, at: this.#now });
  }

  protected act(action: Action): void {
    this.#actions.push(action);
  }

  protected arm(timer: Timer, delay: number): void {
    this.#armed.add(timer);
    this.act({ type: 'arm', timer, delay });
  }

  protected disarm(timer: Timer): void {
    if (this.#armed.delete(timer)) this.act({ type: 'disarm', timer });
  }

  protected post(request: Request): void {
    this.act({ type: 'post', request });
    this.mark(`${request}Posted`);
  }

  protected release(): void {
    this.disarm('deadline');
    this.disarm('held');
    this.#released = true;
    this.act({ type: 'release' });
    this.mark('released');
  }

  /** What fails after the release is the connection's own affair. */
  protected fail(error: Error): void {
    for (const timer of this.#armed) this.disarm(timer);
    this.#failed = true;
    if (this.#released) return;
    this.act({ type: 'fail', error });
    this.mark('failed');
  }
}

function isCommon<Event extends { type: string }>(event: CommonEvent | Event): event is CommonEvent {
  return event.type === 'timer' || event.type === 'failed';
}
