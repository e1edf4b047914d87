import { setHook, useBinding } from '../binding/addon.js';
import type { NativeCmEvent } from '../binding/cm.js';
import { NativeObject } from '../binding/native-object.js';

/** Who hears the events of a cm_id. */
export interface CmEventListener {
  handleEvent(event: NativeCmEvent): void;
}

/** The listeners of this environment by the handle of their cm_id. */
export const listeners = new Map<number, CmEventListener>();

setHook('onCmEvent', (event) => {
  const listener = listeners.get(event.listener === 0 ? event.id : event.listener);
  if (listener !== undefined) listener.handleEvent(event);
  // A request whose listener is closing has nobody who could answer it.
  else if (event.listener !== 0) useBinding().native.destroyId(event.id);
});

/** `rdma_event_channel`: brings the events of its cm_ids to the event loop. */
export class EventChannel extends NativeObject {
  /** `rdma_create_event_channel(3)`. Throws `ENODEV` or `ENOENT` where the kernel has no rdma_ucm. */
  constructor() {
    const { native } = useBinding();
    super('EventChannel', 0, native.createEventChannel(), (handle) => native.destroyEventChannel(handle));
  }

  /** The channel keeps the process alive (the default). */
  ref(): this {
    useBinding().native.referenceEventChannel(this.handle, true);
    return this;
  }

  /** The channel does not keep the process alive. */
  unref(): this {
    useBinding().native.referenceEventChannel(this.handle, false);
    return this;
  }
}
