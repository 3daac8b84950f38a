import { isNightshiftError } from '../core/errors';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';

/** What {@link createFirstRequests} needs. */
export interface FirstRequestOptions {
  readonly metrics: Pick<WorkerMetrics, 'firstRequest'>;
  readonly batches: Pick<BatchRepository, 'noteFirstRequest'>;
  readonly retryMs?: number;
}

/** Batches of which this process has sent a request and that it remembers. */
const MAX_BATCHES = 10_000;
const RETRY_MS = 5_000;

/**
 * Returns what is called for each request. The first one of a batch in this process is noted in its row, and
 * observed if no other process was faster. While PostgreSQL does not answer, it is tried again every 5 s: the
 * time is that of the request, not that of the statement.
 */
export function createFirstRequests(options: FirstRequestOptions): (batchId: string) => void {
  const begun = new Set<string>();
  return (batchId) => {
    if (begun.has(batchId)) return;
    const [oldest] = begun;
    if (begun.size >= MAX_BATCHES && oldest !== undefined) begun.delete(oldest);
    begun.add(batchId);
    note(options, batchId, performance.now());
  };
}

function note(options: FirstRequestOptions, batchId: string, sentAtMs: number): void {
  const { metrics, batches, retryMs = RETRY_MS } = options;
  batches.noteFirstRequest(batchId, performance.now() - sentAtMs).then(
    (ageSec) => {
      if (ageSec !== null) metrics.firstRequest.observe(ageSec);
    },
    (error: unknown) => {
      if (!isNightshiftError(error, 'postgres_unavailable')) return;
      setTimeout(() => note(options, batchId, sentAtMs), retryMs).unref();
    },
  );
}
