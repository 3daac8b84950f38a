import type { BatchActivities, FinalizeResult } from '../activities/contract';
import type { TerminalStatus } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import { sizeBucket } from '../platform/metrics';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';

type Observed = Pick<BatchActivities, 'ingest' | 'finalize' | 'recordUnfinalized'>;

/** What a batch's end counts as: `result` and `reason` of seed 000's `jobs_processed_total`. */
export const END_RESULTS: Readonly<Record<TerminalStatus, { result: string; reason: string }>> = {
  completed: { result: 'success', reason: 'none' },
  cancelled: { result: 'cancelled', reason: 'none' },
  expired: { result: 'expired', reason: 'expired_execution' },
  failed: { result: 'failed', reason: 'system_error' },
};

/**
 * The same activities, measured: waits, planning and the ends of batches, under the names of seed 000.
 * A batch that ends twice over (an attempt that was thought dead) is counted by each.
 */
export function measureJobs<A extends Observed>(
  activities: A,
  { metrics, batches }: { metrics: WorkerMetrics; batches: Pick<BatchRepository, 'find'> },
): A {
  const bornMsOf = async (batchId: string): Promise<number | null> => {
    // For a metric alone: a database that is away must not hold up the batch.
    const row = await batches.find(batchId).catch(() => null);
    return row === null ? null : row.createdAtSec * 1000;
  };
  const ageOf = async (batchId: string): Promise<number | null> => {
    const bornMs = await bornMsOf(batchId);
    return bornMs === null ? null : secondsSince(bornMs);
  };
  return {
    ...activities,
    ingest: async (input) => {
      const startedMs = Date.now();
      const bornMs = await bornMsOf(input.batchId);
      if (bornMs !== null) metrics.queueWait.observe(secondsSince(bornMs));
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
      const tookSec = await ageOf(input.batchId);
      if (tookSec === null) return result;
      metrics.endToEndLatency.observe({ status: result.status }, tookSec);
      metrics.jobDuration.observe({ size_bucket: sizeBucket(result.counts.total) }, tookSec);
      return result;
    },
    recordUnfinalized: async (input) => {
      const row = await activities.recordUnfinalized(input);
      if (!row.found || !isTerminal(row.status)) return row;
      metrics.jobsProcessed.inc(END_RESULTS[row.status]);
      const tookSec = await ageOf(input.batchId);
      if (tookSec !== null) metrics.endToEndLatency.observe({ status: row.status }, tookSec);
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
