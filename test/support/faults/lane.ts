import { performAction } from '#lib/guest/action.js';
import type { Cell, Device } from './cell.js';
import type { Result } from './messages.js';
import {
  addDevice,
  lose,
  makePlain,
  openPlace,
  type Place,
  removeDevice,
  setLink,
  setPatience,
} from './place.js';
import { Player } from './player.js';
import { peerPart } from './terms.js';

/** Runs cells of one kind of device, one after the other, against one process that has to outlive them all. */
export class Lane {
  readonly #device: Device;
  readonly #place: Place;
  #subject: Player;
  /** The next cell's: loaded while this one runs. */
  #spare: Player;

  static async open(device: Device): Promise<Lane> {
    const lane = new Lane(device, await openPlace(device));
    await lane.#openBystander();
    return lane;
  }

  private constructor(device: Device, place: Place) {
    this.#device = device;
    this.#place = place;
    this.#subject = new Player('subject', place.subject.command);
    this.#spare = new Player('peer', place.peer.command);
  }

  async run(cell: Cell): Promise<Result> {
    const peer = this.#spare;
    await peer.loaded;
    try {
      await makePlain(this.#place);
      const result = await this.#play(cell, peer);
      if (cell.fault === 'device removed') return result;
      this.#subject.tell({ type: 'use bystander' });
      const { exchanged } = await this.#subject.hear('bystander');
      return exchanged ? result : { ...result, broken: [...result.broken, 'the bystander is cut off'] };
    } catch (error) {
      // What is wrong with this cell is not to be the fault of the next.
      await this.#replaceSubject();
      throw error;
    } finally {
      await peer.kill();
      this.#spare = new Player('peer', this.#place.peer.command);
    }
  }

  /** Ends the process in order. @returns the native objects that are left in it */
  async finish(): Promise<Record<string, number>> {
    this.#subject.tell({ type: 'finish' });
    return (await this.#subject.hear('done')).left;
  }

  async close(): Promise<void> {
    await this.#subject.kill();
    await this.#spare.kill();
    await this.#place.close();
  }

  async #play(cell: Cell, peer: Player): Promise<Result> {
    const { side, stage, fault } = cell;
    const subject = this.#subject;
    const { subject: here, peer: there } = this.#place;
    if (side === 'active') {
      peer.tell(peerPart(cell, there.address, 0));
      const { port } = await peer.hear('listening');
      // Nobody listens on the one, and no network leads to the other (TEST-NET-1, RFC 5737).
      const target =
        fault === 'port refused'
          ? { host: there.address, port: 9 }
          : { host: fault === 'no route' ? '192.0.2.1' : there.address, port };
      const before = stage === 'resolving' ? await this.#apply(cell, peer) : undefined;
      subject.tell({ type: 'begin', cell, ...target });
      await subject.hear('reached');
      if (stage === 'requested') await peer.hear('request');
      const undo = before ?? (await this.#apply(cell, peer));
      subject.tell({ type: 'go' });
      return this.#settled(undo);
    }
    subject.tell({ type: 'begin', cell, host: here.address, port: 0 });
    const { port } = await subject.hear('listening');
    peer.tell(peerPart(cell, here.address, port));
    await subject.hear('reached');
    const undo = await this.#apply(cell, peer);
    subject.tell({ type: 'go' });
    return this.#settled(undo);
  }

  async #settled(undo: () => Promise<unknown>): Promise<Result> {
    try {
      return (await this.#subject.hear('settled')).result;
    } finally {
      await undo();
    }
  }

  /** Brings the fault about, unless it is the watched side's own doing; the returned function takes it back. */
  async #apply({ fault }: Cell, peer: Player): Promise<() => Promise<unknown>> {
    const { subject } = this.#place;
    const nothing = async () => {};
    switch (fault) {
      case 'peer killed':
        await peer.kill();
        return nothing;
      case 'peer stopped':
        await peer.freeze();
        return nothing;
      case 'access violation':
        peer.tell({ type: 'violate' });
        return nothing;
      case 'loss of 1 %':
        await lose(this.#place, 1);
        return nothing;
      case 'loss of 20 %':
        await lose(this.#place, 20);
        return nothing;
      case 'partition':
        // 15 by default: a quarter of an hour.
        await setPatience(subject, 2);
        await subject.wire.partition();
        return async () => {
          await subject.wire.heal();
          await setPatience(subject, 15);
        };
      case 'link down':
        await setLink(subject, false);
        return () => setLink(subject, true);
      case 'memlock exhausted':
        return this.#limit('--memlock', '65536:unlimited');
      case 'descriptors exhausted':
        return this.#limit('--nofile', '3:1048576');
      case 'device removed': {
        const gone = removeDevice(subject);
        gone.catch(() => {});
        return async () => {
          await this.#subject.kill();
          await peer.kill();
          await gone;
          await addDevice(subject, this.#device);
          await this.#replaceSubject();
        };
      }
      default:
        return nothing;
    }
  }

  async #limit(option: string, limit: string): Promise<() => Promise<void>> {
    const set = (value: string) =>
      performAction({ run: ['prlimit', '--pid', String(this.#subject.pid), `${option}=${value}`] });
    await set(limit);
    return () => set(option === '--nofile' ? '1048576:1048576' : 'unlimited:unlimited');
  }

  async #replaceSubject(): Promise<void> {
    await this.#subject.kill();
    this.#subject = new Player('subject', this.#place.subject.command);
    await this.#openBystander();
  }

  async #openBystander(): Promise<void> {
    await this.#subject.loaded;
    this.#subject.tell({ type: 'open bystander', host: this.#place.bystander });
    await this.#subject.hear('done');
  }
}
