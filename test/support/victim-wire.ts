import { onTestFinished } from 'vitest';
import { planRxePair } from '#lib/guest/network-plan.js';
import { Egress, Wire } from '#lib/guest/wire.js';

/**
 * The wire between the two rxe devices that the guest has from its start, for a process of which one end is its own:
 * librdmacm keeps every device open as long as the process lives, so a pair of its own could not be removed again.
 */
export function rxeWire(): { wire: Wire; far: string } {
  const [near, far] = planRxePair(0);
  const wire = new Wire(new Egress(near), new Egress(far));
  onTestFinished(async () => {
    await wire.heal();
    await wire.shape({});
  });
  return { wire, far: far.address };
}
