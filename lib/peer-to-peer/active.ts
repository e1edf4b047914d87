import { RdmaError } from '../errors.js';
import { Handshake, type PeerToPeerSummary, type Request, type Timed, type Timer } from './handshake.js';
import type { Transport } from './header.js';
import { type Agreement, NO_AGREEMENT } from './negotiation.js';
import type { PeerToPeer, Rtr } from './options.js';

/** What the active side has to be told. */
export type ActiveEvent = Timed<
  /** `rdma_connect()` is about to be called. */
  | { type: 'connecting' }
  /**
   * `RDMA_CM_EVENT_ESTABLISHED`, with the depths of the event as they are and what the peer's answer came to. All
   * requests of the handshake can be posted.
   */
  | { type: 'established'; agreement: Agreement; initiatorDepth: number; responderResources: number }
  /** This request of the handshake succeeded: all of them are to be signalled. */
  | { type: 'completed'; request: Request }
  /** Any receive completed. */
  | { type: 'received' }
>;

const KICK_DELAY = 150;

// A foreign peer is owed as little as possible, and a slow one is likelier than a lost wake-up.
const KICK_DELAY_NOT_NEGOTIATED = 1000;

/** The side that called `connect()`: it sends the ready-to-receive message. */
export class ActiveHandshake extends Handshake<ActiveEvent> {
  readonly #options: PeerToPeer | null;
  readonly #transport: Transport;
  #connectingAt: number | null = null;
  #establishedAt: number | null = null;
  #agreement: Agreement = NO_AGREEMENT;
  #first: 'read' | 'write' | 'go' | null = null;
  #kicked = false;

  /** `options` is null for a plain connection, whose sends flow once it is established. */
  constructor(options: PeerToPeer | null, transport: Transport) {
    super();
    this.#options = options;
    this.#transport = transport;
  }

  get summary(): PeerToPeerSummary {
    return {
      requested: this.#options !== null,
      negotiated: this.#agreement.peerToPeer,
      rtr: rtrOf(this.#first),
      kicked: this.#kicked,
      times: this.times,
    };
  }

  protected override react(event: ActiveEvent): void {
    switch (event.type) {
      case 'connecting':
        this.#connectingAt = event.at;
        this.mark('connecting');
        break;
      case 'established':
        if (this.#establishedAt === null) this.#establish(event);
        break;
      case 'completed':
        this.mark(`${event.request}Completed`);
        if (event.request === this.#first) this.#complete();
        break;
      case 'received':
        if (this.#receiveProvesProgress()) this.disarm('kick');
        break;
    }
  }

  protected override expire(timer: Timer): void {
    if (timer === 'kick') {
      this.#kicked = true;
      this.post('kick');
    } else {
      this.fail(
        new RdmaError(
          'ERR_RDMA_PEER_TO_PEER_TIMEOUT',
          `The 0-byte ${this.#first} of the peer-to-peer handshake did not complete in time`,
        ),
      );
    }
  }

  #establish(event: ActiveEvent & { type: 'established' }): void {
    this.#establishedAt = event.at;
    this.act({ type: 'established' });
    this.mark('established');
    if (this.#options === null) {
      this.release();
      return;
    }
    this.#agreement = event.agreement;
    const negotiated = this.#agreement.peerToPeer;
    if (!negotiated && this.#options.negotiate !== 'off') this.#warnNotNegotiated();

    // Whichever of the two limits the Read: siw, irdma and qedr exchange them.
    const canRead = event.initiatorDepth > 0 && event.responderResources > 0;
    this.#first = firstRequest(this.#agreement, this.#options, canRead);
    this.post(this.#first);
    if (negotiated && this.#first !== 'go') this.post('go');

    // siw can lose the wake-up of the very first FPDU, whatever that was, until another one comes.
    this.arm('kick', this.#kickDelay());
    if (negotiated && this.#first !== 'read') this.release();
    else this.arm('deadline', this.#options.timeout);
  }

  #complete(): void {
    if (this.#first === 'read') this.disarm('kick');
    else this.#acknowledged();
    if (!this.released) this.release();
  }

  /** A Write or Send completed: on RoCE and InfiniBand the peer has it, on iWARP it has left, no more. */
  #acknowledged(): void {
    if (this.#transport !== 'iwarp') this.disarm('kick');
  }

  /**
   * A peer that took part speaks only after GO. Another may have spoken first, without any of ours having reached
   * it, so there the Read's own completion is waited for; a Write has nothing better to tell.
   */
  #receiveProvesProgress(): boolean {
    return this.#agreement.peerToPeer || this.#first === 'write';
  }

  #kickDelay(): number {
    if (!this.#agreement.peerToPeer) return KICK_DELAY_NOT_NEGOTIATED;
    if (this.#connectingAt === null || this.#establishedAt === null) return KICK_DELAY;
    return Math.max(KICK_DELAY, 2 * (this.#establishedAt - this.#connectingAt));
  }

  #warnNotNegotiated(): void {
    this.act({
      type: 'warn',
      code: 'RDMA_PEER_TO_PEER_NOT_NEGOTIATED',
      message:
        'The peer takes no part in peerToPeer, so nothing keeps it from sending too early. Set ' +
        "peerToPeer: { negotiate: 'off' } for a peer that is known not to, or 'require' to refuse such peers.",
    });
  }
}

/** A foreign peer would take GO for a message, so there is a Write where no Read is possible. */
function firstRequest(agreement: Agreement, options: PeerToPeer, canRead: boolean): 'read' | 'write' | 'go' {
  if (!agreement.peerToPeer) return options.rtr === 'write' || !canRead ? 'write' : 'read';
  if (agreement.rtr === 'write') return 'write';
  return agreement.rtr === 'read' && canRead ? 'read' : 'go';
}

function rtrOf(first: 'read' | 'write' | 'go' | null): Rtr | null {
  return first === 'go' ? 'send' : first;
}
