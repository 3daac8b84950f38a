import type { BatchActivities, FinalizeResult } from '../activities/contract';
import type { TerminalStatus } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import { sizeBucket } from '../platform/metrics';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';

type Observed = Pick<BatchActivities, 'ingest' | 'finalize' | 'recordUnfinalized'>;

/** How the end of a batch is counted: labels of `jobs_processed_total` (docs/design/configuration.md#metric-names). */
export const END_RESULTS: Readonly<Record<TerminalStatus, { result: string; reason: string }>> = {
  completed: { result: 'success', reason: 'none' },
  cancelled: { result: 'cancelled', reason: 'none' },
  expired: { result: 'expired', reason: 'expired_execution' },
  failed: { result: 'failed', reason: 'system_error' },
};

/**
 * Wraps activities so that queue waits, planning and ends of batches are measured. If two attempts end the
 * same batch, because one of them was thought dead, each counts it.
 */
export function measureJobs<A extends Observed>(
  activities: A,
  { metrics, batches }: { metrics: WorkerMetrics; batches: Pick<BatchRepository, 'find'> },
): A {
  const createdMsOf = async (batchId: string): Promise<number | null> => {
    // This is only for a metric: an outage of the database must not hold up the batch.
    const row = await batches.find(batchId).catch(() => null);
    return row === null ? null : row.createdAtSec * 1000;
  };
  const ageOf = async (batchId: string): Promise<number | null> => {
    const createdMs = await createdMsOf(batchId);
    return createdMs === null ? null : secondsSince(createdMs);
  };
  return {
    ...activities,
    ingest: async (input) => {
      const startedMs = Date.now();
      const createdMs = await createdMsOf(input.batchId);
      if (createdMs !== null) metrics.queueWait.observe(secondsSince(createdMs));
      const result = await activities.ingest(input);
      const lines = result.kind === 'planned' ? result.lineCount : 0;
      const size_bucket = sizeBucket(lines);
      metrics.planBuildDuration.observe({ size_bucket }, secondsSince(startedMs));
      return result;
    },
    finalize: async (input) => {
      const result = await activities.finalize(input);
      if (result.kind === 'holes') return result;
      countEnd(metrics, result);
      const ageSec = await ageOf(input.batchId);
      if (ageSec === null) return result;
      metrics.endToEndLatency.observe({ status: result.status }, ageSec);
      metrics.jobDuration.observe({ size_bucket: sizeBucket(result.counts.total) }, ageSec);
      return result;
    },
    recordUnfinalized: async (input) => {
      const row = await activities.recordUnfinalized(input);
      if (!row.found || !isTerminal(row.status)) return row;
      metrics.jobsProcessed.inc(END_RESULTS[row.status]);
      const ageSec = await ageOf(input.batchId);
      if (ageSec !== null) metrics.endToEndLatency.observe({ status: row.status }, ageSec);
      return row;
    },
  };
}

function countEnd(
  metrics: WorkerMetrics,
  { status, counts }: FinalizeResult & { kind: 'done' },
): void {
  const refused = status === 'failed' && counts.total === 0;
  metrics.jobsProcessed.inc(
    refused ? { result: 'failed', reason: 'invalid_input' } : END_RESULTS[status],
  );
}

function secondsSince(ms: number): number {
  return Math.max(0, Date.now() - ms) / 1000;
}
