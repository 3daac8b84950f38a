import type { BatchActivities, FinalizeResult } from '../../activities/contract';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import type { BatchRow } from '../../storage/postgres/batches/types';
import { measureJobs } from '../../workers/job-metrics';

type Observed = Pick<BatchActivities, 'ingest' | 'finalize' | 'recordUnfinalized'>;

const unfinalized = { found: true, status: 'cancelled', stopCause: 'cancelled' } as const;

const row = { createdAtSec: Math.floor(Date.now() / 1000) - 2 } as BatchRow;

function done(status: 'completed' | 'failed' | 'expired', total: number): FinalizeResult {
  const counts = { total, completed: 0, failed: 0 };
  return { kind: 'done', status, counts, outputFileId: null, errorFileId: null };
}

describe('the metrics of jobs', () => {
  it('count every end once, by result and reason, and do not change results', async () => {
    const registry = createMetricsRegistry('worker');
    const ends = [
      done('completed', 5),
      done('expired', 200),
      done('failed', 0),
      { kind: 'holes', holes: [] } as const,
    ];
    const planned = {
      kind: 'planned',
      nonce: 'n',
      lineCount: 5,
      models: [],
      unroutedLines: 0,
    } as const;
    const measured = measureJobs<Observed>(
      {
        ingest: () => Promise.resolve(planned),
        finalize: () => Promise.resolve(ends.shift() as FinalizeResult),
        recordUnfinalized: () => Promise.resolve(unfinalized),
      },
      {
        metrics: createWorkerMetrics(registry),
        batches: { find: () => Promise.resolve(row) },
      },
    );
    const input = { batchId: 'b', nonce: null, cause: null };
    expect(await measured.ingest({ batchId: 'b' })).toBe(planned);
    const expected = [...ends];
    for (const end of expected) expect(await measured.finalize(input)).toBe(end);
    expect(await measured.recordUnfinalized({ batchId: 'b', cause: null })).toBe(unfinalized);
    const text = await registry.metrics();
    expect(text).toMatch(/jobs_processed_total\{result="cancelled",reason="none",[^}]*\} 1/);
    expect(text).toMatch(/jobs_processed_total\{result="success",reason="none",[^}]*\} 1/);
    expect(text).toMatch(
      /jobs_processed_total\{result="expired",reason="expired_execution",[^}]*\} 1/,
    );
    expect(text).toMatch(/jobs_processed_total\{result="failed",reason="invalid_input",[^}]*\} 1/);
    expect(text).toMatch(/plan_build_duration_seconds_count\{[^}]*size_bucket="100"[^}]*\} 1/);
    expect(text).toMatch(/batch_job_e2e_latency_seconds_sum\{[^}]*status="completed"[^}]*\} [2-9]/);
    expect(text).toMatch(/job_queue_wait_duration_seconds_count\{[^}]*\} 1/);
  });

  it('do not hold up a batch whose row cannot be read', async () => {
    const measured = measureJobs<Observed>(
      {
        ingest: () => Promise.resolve({ kind: 'invalid', errorCount: 1 }),
        finalize: () => Promise.resolve(done('failed', 0)),
        recordUnfinalized: () => Promise.resolve(unfinalized),
      },
      {
        metrics: createWorkerMetrics(createMetricsRegistry('worker')),
        batches: { find: () => Promise.reject(new Error('away')) },
      },
    );
    expect(await measured.ingest({ batchId: 'b' })).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(await measured.finalize({ batchId: 'b', nonce: null, cause: null })).toMatchObject({
      status: 'failed',
    });
  });
});
