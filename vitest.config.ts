import { defineConfig } from 'vitest/config';

// The tests run as compiled by `tsc -b`: a guest without KVM would spend minutes on transforming them.
export default defineConfig({
  test: {
    dir: '.build/test',
    include: ['**/*.test.js'],
    pool: 'forks',
    fileParallelism: false,
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
});
