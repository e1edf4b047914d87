import { EventEmitter } from 'node:events';
import { setHook } from '../binding/addon.js';

/** `ibv_event_type` by number: `ibv_get_async_event(3)`. */
const names = [
  'cq-err',
  'qp-fatal',
  'qp-req-err',
  'qp-access-err',
  'comm-est',
  'sq-drained',
  'path-mig',
  'path-mig-err',
  'device-fatal',
  'port-active',
  'port-err',
  'lid-change',
  'pkey-change',
  'sm-change',
  'srq-err',
  'srq-limit-reached',
  'qp-last-wqe-reached',
  'client-reregister',
  'gid-change',
  'wq-fatal',
] as const;

/** The C name without `IBV_EVENT_`: `IBV_EVENT_PORT_ACTIVE` is `port-active`. */
export type AsyncEventName = (typeof names)[number];

/** An asynchronous event, of the object whose `events` emitted it: `ibv_get_async_event(3)`. */
export interface AsyncEvent {
  readonly name: AsyncEventName;
  /** Of the events of a port; 0 for others. */
  readonly port: number;
}

/** Emits each event under its name. An event that nobody listens for is lost. */
export type AsyncEvents<Name extends AsyncEventName> = EventEmitter<Record<Name, [event: AsyncEvent]>>;

export type DeviceEventName =
  | 'device-fatal'
  | 'port-active'
  | 'port-err'
  | 'lid-change'
  | 'pkey-change'
  | 'sm-change'
  | 'client-reregister'
  | 'gid-change';
export type QueuePairEventName =
  | 'qp-fatal'
  | 'qp-req-err'
  | 'qp-access-err'
  | 'comm-est'
  | 'sq-drained'
  | 'path-mig'
  | 'path-mig-err'
  | 'qp-last-wqe-reached';
export type CompletionQueueEventName = 'cq-err';
export type SharedReceiveQueueEventName = 'srq-err' | 'srq-limit-reached';

/** Held by the object that they are of. */
const emitters = new Map<number, WeakRef<AsyncEvents<AsyncEventName>>>();

const forgotten = new FinalizationRegistry<number>((handle) => {
  if (emitters.get(handle)?.deref() === undefined) emitters.delete(handle);
});

setHook('onAsyncEvent', (type, device, object, port) => {
  const name = names[type];
  if (name !== undefined)
    emitters
      .get(device === 0 ? object : device)
      ?.deref()
      ?.emit(name, { name, port });
});

/** The emitter of the events that the addon reports for a handle. */
export function asyncEvents<Name extends AsyncEventName>(handle: number): AsyncEvents<Name> {
  const emitter: AsyncEvents<AsyncEventName> = new EventEmitter();
  emitters.set(handle, new WeakRef(emitter));
  forgotten.register(emitter, handle);
  return emitter as AsyncEvents<Name>;
}
