import { Counter, Gauge, type Registry } from 'prom-client';

/** What a pool shows at a scrape. */
export interface PoolSample {
  readonly pool: string;
  readonly upper: number;
  readonly lower: number;
  readonly watermark: number;
  readonly activeFlows: number;
  readonly saturation: number;
  readonly queuedCost: number;
  readonly dequeueAttempts: number;
  readonly dequeueSuccesses: number;
  readonly backends: readonly BackendSample[];
}

/** What a backend shows at a scrape. */
export interface BackendSample {
  /** Its URL without secrets. */
  readonly backend: string;
  readonly isReady: boolean;
  readonly limit: number;
  readonly inFlight: number;
}

/** Series that are filled when they are read. */
export interface PoolSeries {
  /** Sets the source of the values; called once. */
  observePools(source: () => readonly PoolSample[]): void;
}

/** Registers the series of pools and backends (docs/metrics.md#gateway). */
export function createPoolSeries(registers: Registry[]): PoolSeries {
  const source: Source = { read: () => [] };
  const ofPools = gauges(registers, 'pool', () => source.read());
  const countsOfPools = counters(registers, () => source.read());
  const ofBackends = gauges(registers, 'backend', () => {
    return source.read().flatMap(({ backends }) => backends);
  });
  ofPools('upper_bound', 'Requests in flight up to which new ones bypass', (one) => one.upper);
  ofPools('lower_bound', 'Requests in flight below which the queue drains', (one) => one.lower);
  ofPools('watermark', 'Wanted number of requests in flight', (one) => one.watermark);
  ofPools('active_flows', 'Flows with waiting requests', (one) => one.activeFlows);
  ofPools('gateway_saturation', 'In flight divided by the upper bound', (one) => one.saturation);
  ofPools('gateway_queued_cost', 'Expected cost of waiting requests', (one) => one.queuedCost);
  countsOfPools('popper_dequeue_attempts', 'Looks for a request to dispatch', (one) => {
    return one.dequeueAttempts;
  });
  countsOfPools('popper_dequeue_successes', 'Dispatches of waiting requests', (one) => {
    return one.dequeueSuccesses;
  });
  ofBackends('gateway_backend_ready', 'Whether a backend is ready', (one) => Number(one.isReady));
  ofBackends('gateway_backend_limit', 'Learnt limit of a backend', (one) => one.limit);
  ofBackends('gateway_backend_in_flight', 'Requests in flight at a backend', (one) => one.inFlight);
  return { observePools: (read) => void (source.read = read) };
}

interface Source {
  read: () => readonly PoolSample[];
}

type Register<S> = (name: string, help: string, valueOf: (sample: S) => number) => void;

/** Registers gauges that are read from samples, each under its own name as the only label. */
function gauges<L extends string, S extends Readonly<Record<L, string>>>(
  registers: Registry[],
  label: L,
  read: () => readonly S[],
): Register<S> {
  return (name, help, valueOf) => {
    const gauge: Gauge = new Gauge({
      ...{ name, help, registers, labelNames: [label] },
      collect: () => {
        for (const sample of read()) gauge.set({ [label]: sample[label] }, valueOf(sample));
      },
    });
  };
}

/** Registers counters of the pools. The queue counts; they only show it. */
function counters(registers: Registry[], read: () => readonly PoolSample[]): Register<PoolSample> {
  return (name, help, valueOf) => {
    const counter: Counter = new Counter({
      ...{ name, help, registers, labelNames: ['pool'] },
      collect: () => {
        counter.reset();
        for (const sample of read()) counter.inc({ pool: sample.pool }, valueOf(sample));
      },
    });
  };
}
