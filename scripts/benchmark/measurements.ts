import { latencyMeasurements } from './latency-measurements.js';
import type { Measurement } from './measurement.js';
import { scaleMeasurements } from './scale-measurements.js';
import { streamMeasurements } from './stream-measurements.js';

export const measurements: readonly Measurement[] = [
  ...latencyMeasurements,
  ...streamMeasurements,
  ...scaleMeasurements,
];
