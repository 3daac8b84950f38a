import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import type { EndedBatch } from '../../storage/postgres/batches/types';
import { countEnds } from '../../workers/ended-batches';
import { movedSeries } from '../support/metric-values';

const END: EndedBatch = {
  ...{ status: 'completed', refused: false, requests: 5, phase: 'finalizing' },
  ...{ ageSec: 30, processingSec: 20 },
};

async function counted(...ends: readonly Partial<EndedBatch>[]): Promise<Record<string, number>> {
  const registry = createMetricsRegistry('worker');
  registry.clear();
  const count = countEnds(createWorkerMetrics(registry));
  for (const end of ends) count({ ...END, ...end });
  return movedSeries(registry);
}

it.each([
  [{ status: 'completed' }, 'success', 'none'],
  [{ status: 'cancelled' }, 'cancelled', 'none'],
  [{ status: 'failed', refused: true }, 'failed', 'invalid_input'],
  [{ status: 'failed' }, 'failed', 'system_error'],
  [{ status: 'expired', phase: 'queued' }, 'expired', 'expired_dequeue'],
  [{ status: 'expired', phase: 'in_progress' }, 'expired', 'expired_execution'],
] as const)('counts the end %j as %s, %s', async (end, result, reason) => {
  const moved = await counted(end, end);
  const jobs = Object.entries(moved).filter(([name]) => name.startsWith('jobs_processed_total'));
  expect(jobs).toEqual([[`jobs_processed_total{result="${result}",reason="${reason}"}`, 2]]);
});

it('observes the whole age by status, and the processing without the wait by size', async () => {
  expect(await counted({ requests: 1_000 })).toMatchObject({
    'batch_job_e2e_latency_seconds_sum{status="completed"}': 30,
    'job_processing_duration_seconds_sum{size_bucket="1000"}': 20,
  });
});

it('observes no processing of a batch that ended before its ingestion', async () => {
  const moved = await counted({ status: 'expired', phase: 'queued', processingSec: null });
  expect(Object.keys(moved).filter((name) => name.startsWith('job_processing'))).toEqual([]);
  expect(moved['batch_job_e2e_latency_seconds_count{status="expired"}']).toBe(1);
});

it('counts a cancel by the phase in which it found the batch', async () => {
  const cancels = (['queued', 'in_progress', 'in_progress', 'finalizing'] as const).map((phase) => {
    return { status: 'cancelled', phase } as const;
  });
  expect(await counted(...cancels, { phase: 'finalizing' })).toMatchObject({
    'batch_cancellation_total{phase="queued"}': 1,
    'batch_cancellation_total{phase="in_progress"}': 2,
    'batch_cancellation_total{phase="finalizing"}': 1,
    'jobs_processed_total{result="cancelled",reason="none"}': 4,
  });
});
