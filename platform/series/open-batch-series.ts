import { Gauge, type Registry } from 'prom-client';
import { within } from '../within';

/** What is open in one status. */
export interface OpenSample {
  readonly status: string;
  readonly batches: number;
  readonly overdue: number;
  readonly oldestSec: number;
  readonly openLines: number;
}

/** Reads all open batches. It may fail or hang; a scrape then shows no values. */
export type OpenBatchSource = () => Promise<readonly OpenSample[]>;

/** Gauges that are filled when they are read. */
export interface OpenBatchSeries {
  /** Sets the source of the values; called once. */
  observe(source: OpenBatchSource): void;
}

/** Two Prometheus servers that scrape every 15 s cost one statement in 10 s at most. */
const FRESH_MS = 10_000;
/** A scrape must not wait for a database that hangs. */
const LIMIT_MS = 2_000;

/**
 * Registers the gauges of open batches (docs/metrics.md#open-batches). All processes that export them show the
 * same rows, so queries aggregate with `max`.
 */
export function createOpenBatchSeries(
  registers: Registry[],
  statuses: readonly string[],
): OpenBatchSeries {
  const rows = new FreshRows();
  const byStatus = (name: string, help: string, valueOf: (sample: OpenSample) => number): void => {
    const gauge: Gauge<'status'> = new Gauge({
      name,
      help,
      labelNames: ['status'] as const,
      registers,
      collect: async () => {
        const samples = await rows.read();
        gauge.reset();
        if (samples === null) return;
        for (const status of statuses) gauge.set({ status }, 0);
        for (const sample of samples) gauge.set({ status: sample.status }, valueOf(sample));
      },
    });
  };
  byStatus('batches_open', 'Batches that have not ended, by status', (one) => one.batches);
  byStatus('batches_overdue', 'Batches that should have ended, by status', (one) => one.overdue);
  byStatus(
    'batch_oldest_seconds',
    'Longest time that a batch is in its status',
    (one) => one.oldestSec,
  );
  registerWaitingLines(registers, rows);
  return { observe: (source) => void (rows.source = source) };
}

function registerWaitingLines(registers: Registry[], rows: FreshRows): void {
  const gauge: Gauge = new Gauge({
    name: 'batch_waiting_lines',
    help: 'Requests of batches in progress that have no answer yet',
    registers,
    collect: async () => {
      const samples = await rows.read();
      // A gauge without labels keeps a value of 0 after a reset; without rows it must be absent.
      gauge.remove();
      if (samples === null) return;
      gauge.set(samples.find(({ status }) => status === 'in_progress')?.openLines ?? 0);
    },
  });
}

/** The latest rows, shared by all gauges and by all scrapes of the next ten seconds. */
class FreshRows {
  source: OpenBatchSource | null = null;
  #rows: readonly OpenSample[] | null = null;
  #readAtMs = -Infinity;
  /** The read that runs. A scrape does not start another one, so a database that hangs gets one statement. */
  #reading: Promise<void> | null = null;

  /** Null if the source does not answer in time. */
  async read(): Promise<readonly OpenSample[] | null> {
    const isFresh = performance.now() - this.#readAtMs < FRESH_MS;
    if (isFresh || this.source === null) return this.#rows;
    this.#reading ??= this.#update(this.source).finally(() => (this.#reading = null));
    const read = this.#reading.then(() => this.#rows);
    return within(LIMIT_MS, read, () => null);
  }

  /** A failure is not kept: the next scrape tries again. */
  async #update(source: OpenBatchSource): Promise<void> {
    this.#rows = await source().catch(() => null);
    this.#readAtMs = this.#rows === null ? -Infinity : performance.now();
  }
}
