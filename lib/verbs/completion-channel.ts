import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { invalidArgumentType } from '../errors.js';
import { Device } from './device.js';

/** `ibv_comp_channel`: wakes the event loop for the completion queues that are made on it. */
export class CompletionChannel extends NativeObject {
  readonly device: Device;

  /** `ibv_create_comp_channel(3)`. */
  constructor(device: Device) {
    if (!(device instanceof Device)) throw invalidArgumentType('device', 'a Device', device);
    const { native } = useBinding();
    super(
      'CompletionChannel',
      5,
      native.createCompletionChannel(device.handle),
      (handle) => native.destroyCompletionChannel(handle),
      [device],
    );
    this.device = device;
  }
}
