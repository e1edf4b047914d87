import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { type EventChannel, listeners } from './event-channel.js';

/** The native half of a `CmId`, which is an EventEmitter and so can't extend it. */
export class NativeId extends NativeObject {
  readonly #abandonCalls: () => void;
  #channel: EventChannel;

  /** `abandonCalls` runs when the id is closed, also by its channel. */
  constructor(handle: number, channel: EventChannel, abandonCalls: () => void) {
    const { native } = useBinding();
    const destroy = (id: number) => {
      listeners.delete(id);
      return native.destroyId(id);
    };
    super('CmId', 1, handle, destroy, [channel]);
    this.#channel = channel;
    this.#abandonCalls = abandonCalls;
  }

  get channel(): EventChannel {
    return this.#channel;
  }

  migrate(channel: EventChannel): void {
    useBinding().native.migrateId(this.handle, channel.handle);
    this.moveTo(this.#channel, channel);
    this.#channel = channel;
  }

  protected override beforeClose(): undefined {
    this.#abandonCalls();
  }
}
