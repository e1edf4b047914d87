import { useBinding } from '../binding/addon.js';
import { RequestRing } from './request-ring.js';
import { SlotTable } from './slot-table.js';
import { WorkCompletion } from './work-completion.js';

/** The data path of this environment: the two rings and the table that joins them. */
export interface Rings {
  readonly requests: RequestRing;
  readonly completion: WorkCompletion;
  readonly slots: SlotTable;
  readonly control: Uint32Array;
  /** Index in `control` of the count of completions consumed. */
  readonly consumed: number;
  /** Index in `control` of the mark that a batch of completions is being read. */
  readonly inUse: number;
}

let shared: Rings | undefined;

/** The rings of this environment, made on first use. */
export function rings(): Rings {
  if (shared === undefined) {
    const binding = useBinding();
    shared = {
      requests: new RequestRing(),
      completion: new WorkCompletion(),
      slots: new SlotTable(),
      control: new Uint32Array(binding.rings.control),
      consumed: binding.native.layout.control.completionsConsumed >> 2,
      inUse: binding.native.layout.control.completionsInUse >> 2,
    };
  }
  return shared;
}
