import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram, Registry } from 'prom-client';

/**
 * A registry of its own for one process, with Node's default metrics (event loop lag, memory, GC).
 * Never the global one: two processes in one test would clash on names.
 */
export function createMetricsRegistry(process: 'api' | 'worker' | 'simulator'): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** `100`, `1000`, `10000`, `30000` or `large`: the bucket that a batch of `lines` requests counts in. */
export function sizeBucket(lines: number): string {
  const bound = [100, 1_000, 10_000, 30_000].find((limit) => lines <= limit);
  return bound === undefined ? 'large' : String(bound);
}
