import { sizeBucket } from '../platform/metrics';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { EndedBatch } from '../storage/postgres/batches/types';

/**
 * Counts the end of a batch, whichever activity wrote it: the workflow's finalization, or reconcile
 * (docs/metrics.md#results-and-reasons).
 */
export function countEnds(
  metrics: Pick<
    WorkerMetrics,
    'jobsProcessed' | 'jobDuration' | 'endToEndLatency' | 'cancellations'
  >,
): (end: EndedBatch) => void {
  return (end) => {
    const { status, phase, requests, ageSec, processingSec } = end;
    metrics.jobsProcessed.inc(resultOf(end));
    metrics.endToEndLatency.observe({ status }, ageSec);
    if (status === 'cancelled') metrics.cancellations.inc({ phase });
    if (processingSec === null) return;
    metrics.jobDuration.observe({ size_bucket: sizeBucket(requests) }, Math.max(0, processingSec));
  };
}

function resultOf({ status, refused, phase }: EndedBatch): { result: string; reason: string } {
  switch (status) {
    case 'completed':
      return { result: 'success', reason: 'none' };
    case 'cancelled':
      return { result: 'cancelled', reason: 'none' };
    case 'failed':
      return { result: 'failed', reason: refused ? 'invalid_input' : 'system_error' };
    case 'expired': {
      const reason = phase === 'queued' ? 'expired_dequeue' : 'expired_execution';
      return { result: 'expired', reason };
    }
  }
}
