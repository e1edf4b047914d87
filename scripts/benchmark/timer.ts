import type { Program } from './program.js';
import { acceptRing, closeRing, connectRing } from './ring-endpoint.js';
import { postCreditReceives, stream, streamRingOptions, takeSends } from './ring-stream.js';
import { quantile } from './sample.js';

export interface TimerOptions {
  /** Whether Sends go out as fast as they can meanwhile. */
  readonly loaded: boolean;
  readonly samples: number;
}

/** Bytes of a Send. */
const size = 4096;
/** Milliseconds. */
const interval = 10;

/** How late a timer of 10 ms is: the 99.9th percentile in milliseconds. */
export const timerLateness: Program<TimerOptions> = {
  async serve({ address, listening }) {
    const endpoint = await acceptRing(address, streamRingOptions(size), listening, (end) =>
      takeSends(end, size),
    );
    await endpoint.disconnected;
    await closeRing(endpoint);
    return { value: 0 };
  },

  async connect({ address, port, options: { loaded, samples } }) {
    const endpoint = await connectRing(address, port, streamRingOptions(size), postCreditReceives);
    // Closing is what ends it.
    if (loaded)
      stream(endpoint, { operation: 'send', size, iterations: Number.MAX_SAFE_INTEGER }).catch(() => {});
    const late = new Float64Array(samples);
    for (let i = 0; i < samples; i++) {
      const start = performance.now();
      await new Promise((resolve) => setTimeout(resolve, interval));
      late[i] = performance.now() - start - interval;
    }
    await closeRing(endpoint);
    return { value: quantile(late.toSorted(), 0.999) };
  },
};
