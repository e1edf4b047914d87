import { RdmaError } from '../errors.js';
import { Handshake, type PeerToPeerSummary, type Timed, type Timer } from './handshake.js';
import type { Transport } from './header.js';
import type { Agreement } from './negotiation.js';
import { DEFAULT_TIMEOUT } from './options.js';

/** What the passive side has to be told. */
export type PassiveEvent = Timed<
  /** `rdma_accept()` has returned: before that, a post wedges siw's send queue. */
  | { type: 'accepted' }
  /** `RDMA_CM_EVENT_ESTABLISHED`. */
  | { type: 'established' }
  /** A receive completed, with so many bytes. */
  | { type: 'received'; length: number }
  /** The user has asked for something that waits for the release. */
  | { type: 'queued' }
  /** The user called `releaseSends()`. */
  | { type: 'releaseSends' }
>;

export interface PassiveOptions {
  /** The request asked for peer-to-peer, whether or not it was granted. */
  requested: boolean;
  agreement: Agreement;
  transport: Transport;
  /** The longest that GO may take after the accept, in milliseconds: 10,000. */
  timeout?: number | undefined;
}

const HELD_DELAY = 1000;

/**
 * What lets sends flow: GO, where the two sides agreed on it; the first receive, as MPA demands it of a responder
 * (RFC 5044, section 7.1); or the establishment, where the transport demands nothing.
 */
type Gate = 'go' | 'receive' | 'establishment';

/** The side that accepted: its sends are held until the connection can carry them. */
export class PassiveHandshake extends Handshake<PassiveEvent> {
  readonly #options: PassiveOptions;
  readonly #gate: Gate;
  #accepted = false;
  #established = false;
  #told = false;
  #received = false;
  #queued = false;
  #forced = false;

  constructor(options: PassiveOptions) {
    super();
    this.#options = options;
    if (options.agreement.peerToPeer) this.#gate = 'go';
    else this.#gate = options.transport === 'iwarp' ? 'receive' : 'establishment';
  }

  get summary(): PeerToPeerSummary {
    const { requested, agreement } = this.#options;
    return {
      requested,
      negotiated: agreement.peerToPeer,
      rtr: agreement.rtr,
      kicked: false,
      times: this.times,
    };
  }

  protected override react(event: PassiveEvent): void {
    switch (event.type) {
      case 'accepted':
        if (this.#accepted) return;
        this.#accepted = true;
        this.mark('accepted');
        if (this.#gate === 'go') this.arm('deadline', this.#options.timeout ?? DEFAULT_TIMEOUT);
        break;
      case 'established':
        this.#established = true;
        break;
      case 'received':
        if (!this.#receive(event.length)) return;
        break;
      case 'queued':
        this.#queued = true;
        break;
      case 'releaseSends':
        this.#forced = true;
        break;
    }
    this.#proceed();
  }

  protected override expire(timer: Timer): void {
    if (timer === 'held') {
      this.#warnHeld();
    } else {
      this.fail(
        new RdmaError(
          'ERR_RDMA_PEER_TO_PEER_TIMEOUT',
          'The peer asked for a peer-to-peer connection and did not complete its handshake in time',
        ),
      );
    }
  }

  /** False if the peer broke its word, which ends the handshake. */
  #receive(length: number): boolean {
    if (this.#gate === 'go' && !this.#received) {
      if (length !== 0) {
        this.fail(
          new RdmaError(
            'ERR_RDMA_PEER_TO_PEER_UNSUPPORTED',
            `The peer agreed to begin with an empty message and began with one of ${length} bytes`,
          ),
        );
        return false;
      }
      this.act({ type: 'swallow' });
      this.mark('goReceived');
    }
    this.#received = true;
    return true;
  }

  /**
   * A receive is as good as ESTABLISHED, and often dequeued before it: it is another descriptor's event. Neither
   * counts before `rdma_accept()` has returned, which it does on another thread.
   */
  #proceed(): void {
    if (!this.#accepted || !(this.#established || this.#received)) return;
    if (!this.#told) {
      this.#told = true;
      this.act({ type: 'established' });
      this.mark('established');
    }
    if (this.#mayRelease()) {
      this.release();
    } else if (this.#gate === 'receive' && this.#queued && this.times.held === undefined) {
      this.mark('held');
      this.arm('held', HELD_DELAY);
    }
  }

  #mayRelease(): boolean {
    switch (this.#gate) {
      case 'go':
        return this.#received;
      case 'receive':
        return this.#received || this.#forced;
      case 'establishment':
        return true;
    }
  }

  #warnHeld(): void {
    this.act({
      type: 'warn',
      code: 'RDMA_SENDS_HELD',
      message:
        'Sends on an accepted iWARP connection have waited for a second for the first message of the peer, before ' +
        'which this side must not speak. Let the client connect with peerToPeer, or call ' +
        'connection.releaseSends() once it is known to be ready.',
    });
  }
}
