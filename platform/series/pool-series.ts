import type { Registry } from 'prom-client';
import { readCounter, readGauge, type Reading } from './read-series';

/** What a gateway and its pools show at a scrape. */
export interface GatewaySample {
  readonly pools: readonly PoolSample[];
  /** Bytes that are reserved for bodies that arrive. */
  readonly receivingBytes: number;
  /** `gateway.queue_bytes`. */
  readonly queueBytes: number;
}

/** What a pool shows at a scrape. */
export interface PoolSample {
  readonly pool: string;
  readonly upper: number;
  readonly lower: number;
  readonly watermark: number;
  readonly activeFlows: number;
  readonly saturation: number;
  readonly queuedCost: number;
  readonly queuedBytes: number;
  /** Waiting requests by name of their band. */
  readonly queued: Readonly<Record<string, number>>;
  /** How many batch requests may be in flight; infinity without a limit. */
  readonly sheddableCap: number;
  /** How much slower streams of users begin than in the best of the last minutes; null if that is not known. */
  readonly slowdown: number | null;
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
  observePools(source: () => GatewaySample): void;
}

const NOTHING: GatewaySample = { pools: [], receivingBytes: 0, queueBytes: 0 };

/** Registers the series of pools and backends (docs/metrics.md#gateway). */
export function createPoolSeries(registers: Registry[]): PoolSeries {
  const source = { read: () => NOTHING };
  const read = () => source.read();
  registerPools(registers, read);
  registerBackends(registers, read);
  const bytes = (name: string, help: string, valueOf: (sample: GatewaySample) => number) =>
    readGauge(registers, { name, help }, () => [[{}, valueOf(read())]]);
  bytes('gateway_receiving_bytes', 'Bytes reserved for bodies that arrive', (sample) => {
    return sample.receivingBytes;
  });
  bytes('gateway_queue_bytes', 'The setting gateway.queue_bytes', (sample) => sample.queueBytes);
  return { observePools: (given) => void (source.read = given) };
}

function registerPools(registers: Registry[], sample: () => GatewaySample): void {
  const labelNames = ['pool'];
  const read = (valueOf: (pool: PoolSample) => number | null) => (): Reading[] =>
    sample().pools.flatMap((pool): Reading[] => {
      const value = valueOf(pool);
      return value === null ? [] : [[{ pool: pool.pool }, value]];
    });
  const gauge = (name: string, help: string, valueOf: (pool: PoolSample) => number | null) =>
    readGauge(registers, { name, help, labelNames }, read(valueOf));
  const counter = (name: string, help: string, valueOf: (pool: PoolSample) => number) =>
    readCounter(registers, { name, help, labelNames }, read(valueOf));
  gauge('upper_bound', 'Requests in flight up to which new ones bypass', ({ upper }) => upper);
  gauge('lower_bound', 'Requests in flight below which the queue drains', ({ lower }) => lower);
  gauge('watermark', 'Wanted number of requests in flight', ({ watermark }) => watermark);
  gauge('active_flows', 'Flows with waiting requests', ({ activeFlows }) => activeFlows);
  gauge(
    'gateway_saturation',
    'In flight divided by what fills the pool',
    (pool) => pool.saturation,
  );
  gauge('gateway_queued_cost', 'Expected cost of waiting requests', (pool) => pool.queuedCost);
  gauge('gateway_queued_bytes', 'Bytes of waiting bodies', ({ queuedBytes }) => queuedBytes);
  gauge('gateway_sheddable_cap', 'How many batch requests may be in flight', (pool) => {
    return Number.isFinite(pool.sheddableCap) ? pool.sheddableCap : null;
  });
  gauge('gateway_ttfb_slowdown', 'Present time to first byte divided by the best', (pool) => {
    return pool.slowdown;
  });
  counter('popper_dequeue_attempts', 'Looks for a request to dispatch', (pool) => {
    return pool.dequeueAttempts;
  });
  counter('popper_dequeue_successes', 'Dispatches of waiting requests', (pool) => {
    return pool.dequeueSuccesses;
  });
  const queued = {
    name: 'gateway_queued_requests',
    help: 'Requests that wait, by band',
    labelNames: ['pool', 'band'],
  };
  readGauge(registers, queued, () =>
    sample().pools.flatMap(({ pool, queued: byBand }) =>
      Object.entries(byBand).map(([band, count]): Reading => [{ pool, band }, count]),
    ),
  );
}

/** A backend of several pools is probed once for each, and is ready if it is for one of them. */
function registerBackends(registers: Registry[], sample: () => GatewaySample): void {
  const gauge = (name: string, help: string, valueOf: (backend: BackendSample) => number) =>
    readGauge(registers, { name, help, labelNames: ['backend'] }, () =>
      backendsOf(sample()).map((one): Reading => [{ backend: one.backend }, valueOf(one)]),
    );
  gauge('gateway_backend_ready', 'Whether a backend is ready', ({ isReady }) => Number(isReady));
  gauge('gateway_backend_limit', 'Learnt limit of a backend', ({ limit }) => limit);
  gauge('gateway_backend_in_flight', 'Requests in flight at a backend', (one) => one.inFlight);
}

function backendsOf({ pools }: GatewaySample): BackendSample[] {
  const byName = new Map<string, BackendSample>();
  for (const one of pools.flatMap(({ backends }) => backends)) {
    const other = byName.get(one.backend);
    byName.set(one.backend, {
      backend: one.backend,
      isReady: one.isReady || other?.isReady === true,
      limit: one.limit + (other?.limit ?? 0),
      inFlight: one.inFlight + (other?.inFlight ?? 0),
    });
  }
  return [...byName.values()];
}
