import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram, Registry } from 'prom-client';

/**
 * A registry for one process, with Node's default metrics (event loop lag, memory, GC). Not the global
 * one: two of our processes inside one test would clash on names.
 */
export function createMetricsRegistry(process: 'api' | 'gateway' | 'worker'): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** The size bucket of a batch with `lines` requests: `100`, `1000`, `10000`, `30000` or `large`. */
export function sizeBucket(lines: number): string {
  const bound = [100, 1_000, 10_000, 30_000].find((limit) => lines <= limit);
  return bound === undefined ? 'large' : String(bound);
}
