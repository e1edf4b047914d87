import { useBinding } from '../binding/addon.js';
import { NativeObject } from '../binding/native-object.js';
import { invalidArgumentType, invalidArgumentValue, requireInteger } from '../errors.js';
import { type AddressVector, toNativeAddressVector } from './address-vector.js';
import { ProtectionDomain } from './protection-domain.js';
import type { DatagramSource } from './work-completion.js';

/** Bytes of the global routing header (`ibv_grh`) that stand before every datagram received. */
export const grhLength = 40;

/**
 * `ibv_ah`: where a datagram of a UD queue pair goes. Requests take it as `destination.addressHandle`. Keep it open until
 * those have completed.
 */
export class AddressHandle extends NativeObject {
  readonly protectionDomain: ProtectionDomain;

  /** `ibv_create_ah(3)`. Throws `ENOTSUP` on iWARP, which has connections only. */
  constructor(pd: ProtectionDomain, vector: AddressVector) {
    if (!(pd instanceof ProtectionDomain)) throw invalidArgumentType('pd', 'a ProtectionDomain', pd);
    const { native } = useBinding();
    const handle = native.createAddressHandle(pd.handle, toNativeAddressVector(vector, 'vector'));
    super('AddressHandle', 1, handle, (ah) => native.destroyAddressHandle(ah), [pd]);
    this.protectionDomain = pd;
  }

  /**
   * The way back to the sender of a datagram: `ibv_init_ah_from_wc(3)`. `source` is that of its completion, `message` the
   * memory that it was received into, with the 40 bytes of its routing header in front. Answer to the queue pair number
   * of the source. `port`: where it came in, from 1.
   */
  static replyVector(
    pd: ProtectionDomain,
    source: DatagramSource,
    message: Uint8Array,
    port = 1,
  ): Required<AddressVector> {
    if (!(pd instanceof ProtectionDomain)) throw invalidArgumentType('pd', 'a ProtectionDomain', pd);
    if (typeof source !== 'object' || source === null)
      throw invalidArgumentType('source', 'the source of a datagram', source);
    if (!(message instanceof Uint8Array)) throw invalidArgumentType('message', 'a Uint8Array', message);
    requireInteger('port', port, 1, 255);
    if (source.routed && message.length < grhLength) {
      throw invalidArgumentValue('message', message, `must begin with the ${grhLength} bytes of the header`);
    }
    const header = source.routed ? message.slice(0, grhLength) : null;
    return useBinding().native.replyAddress(pd.handle, port, source, header);
  }

  /** An address handle to the sender of a datagram: `ibv_create_ah_from_wc(3)`. See {@link AddressHandle.replyVector}. */
  static toSource(
    pd: ProtectionDomain,
    source: DatagramSource,
    message: Uint8Array,
    port = 1,
  ): AddressHandle {
    return new AddressHandle(pd, AddressHandle.replyVector(pd, source, message, port));
  }
}
