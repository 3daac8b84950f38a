import { ApplicationFailure, Context } from '@temporalio/activity';
import type { BatchActivities, OpenedBatch } from '../activities/contract';
import { cancelReasonOf } from '../activities/execute/cancel-reason';
import type { ReconcileActivities } from '../activities/reconcile/contract';
import { isTerminal } from '../core/batch/status';
import { isNightshiftError } from '../core/errors';
import { sizeBucket } from '../platform/metrics';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { MeasuredStep } from '../storage/postgres/batches/measured-times';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { GivenBack } from './given-back';

/** What {@link measureJobs} needs. */
export interface JobMeasurement {
  readonly metrics: Pick<
    WorkerMetrics,
    | 'jobsProcessed'
    | 'queueWait'
    | 'planBuildDuration'
    | 'activeWorkers'
    | 'modelLabels'
    | 'routeWaits'
  >;
  readonly batches: Pick<BatchRepository, 'beginStep'>;
  readonly givenBack: GivenBack;
  /** Identity of this worker. */
  readonly worker: string;
}

type Steps = Pick<
  BatchActivities,
  | 'openBatch'
  | 'projectStatus'
  | 'claimStop'
  | 'ingest'
  | 'executeChunk'
  | 'endUnrouted'
  | 'finalize'
  | 'awaitReleased'
  | 'awaitRoute'
  | 'recordUnfinalized'
> &
  Pick<ReconcileActivities, 'deliverLate'>;

type Step<I, O> = (input: I) => Promise<O>;

/** Runs of workflows without a row that are remembered, so that each counts once. */
const MAX_LOST_RUNS = 1_000;

/**
 * Wraps activities so that queue waits, planning, occupied slots, skipped batches and batches that go back to
 * Temporal are measured (docs/metrics.md#results-and-reasons). Ends are counted by the statement that writes
 * them.
 */
export function measureJobs<A extends Steps>(activities: A, options: JobMeasurement): A {
  const { metrics } = options;
  const lost = new LostRuns();
  const timed = <I extends { batchId: string }, O>(step: Step<I, O>) =>
    countedIfGivenBack(step, options);
  const slot = <I extends { batchId: string }, O>(step: Step<I, O>) =>
    occupyingSlot(timed(step), metrics);
  return {
    ...activities,
    openBatch: timed(async (input) => {
      const opened = await activities.openBatch(input);
      countSkipped(metrics, opened, lost);
      return opened;
    }),
    projectStatus: timed(activities.projectStatus),
    claimStop: timed(activities.claimStop),
    awaitReleased: timed(activities.awaitReleased),
    recordUnfinalized: timed(activities.recordUnfinalized),
    awaitRoute: countedIfUnrouted(activities.awaitRoute, metrics),
    executeChunk: slot(activities.executeChunk),
    endUnrouted: slot(activities.endUnrouted),
    deliverLate: slot(activities.deliverLate),
    ingest: slot(async (input) => {
      noteStep(options, input.batchId, 'ingestion');
      const startedMs = performance.now();
      const result = await activities.ingest(input);
      if (result.kind === 'invalid') return result;
      const size_bucket = sizeBucket(result.lineCount);
      metrics.planBuildDuration.observe({ size_bucket }, (performance.now() - startedMs) / 1000);
      return result;
    }),
    finalize: slot((input) => {
      noteStep(options, input.batchId, 'finalization');
      return activities.finalize(input);
    }),
  };
}

/** Not awaited: an outage of the database must not hold up the batch for a metric. */
function noteStep(
  { batches, worker, metrics }: JobMeasurement,
  batchId: string,
  step: MeasuredStep,
): void {
  batches.beginStep(batchId, { step, worker }).then(
    (waitSec) => {
      if (waitSec !== null) metrics.queueWait.observe(Math.max(0, waitSec));
    },
    () => undefined,
  );
}

function countSkipped(
  { jobsProcessed }: JobMeasurement['metrics'],
  { found, status }: OpenedBatch,
  lost: LostRuns,
): void {
  if (!found && lost.isNew()) {
    jobsProcessed.inc({ result: 'skipped', reason: 'db_inconsistency' });
  }
  if (found && isTerminal(status)) {
    jobsProcessed.inc({ result: 'skipped', reason: 'not_runnable_state' });
  }
}

/** The latest runs of workflows that have no row; each looks for it once a minute. */
class LostRuns {
  readonly #runs = new Set<string>();

  /** Whether this activity is the first of its run that found no row. */
  isNew(): boolean {
    const runId = Context.current().info.workflowExecution?.runId ?? '';
    if (this.#runs.has(runId)) return false;
    const [oldest] = this.#runs;
    if (this.#runs.size >= MAX_LOST_RUNS && oldest !== undefined) this.#runs.delete(oldest);
    this.#runs.add(runId);
    return true;
  }
}

function occupyingSlot<I, O>(
  step: Step<I, O>,
  { activeWorkers }: JobMeasurement['metrics'],
): Step<I, O> {
  return async (input) => {
    activeWorkers.inc();
    try {
      return await step(input);
    } finally {
      activeWorkers.dec();
    }
  };
}

/** Counts attempts that fail because PostgreSQL does not answer, or because this process shuts down. */
function countedIfGivenBack<I extends { batchId: string }, O>(
  step: Step<I, O>,
  { metrics, givenBack }: JobMeasurement,
): Step<I, O> {
  return async (input) => {
    try {
      return await step(input);
    } catch (error) {
      if (isDatabaseAway(error)) {
        metrics.jobsProcessed.inc({ result: 're_enqueued', reason: 'db_transient' });
      } else if (isShutDown()) givenBack(input.batchId);
      throw error;
    }
  };
}

/** It fails for one reason only: no running worker can send the model. */
function countedIfUnrouted<O>(
  step: Step<{ model: string }, O>,
  { modelLabels, routeWaits }: JobMeasurement['metrics'],
): Step<{ model: string }, O> {
  return async (input) => {
    try {
      return await step(input);
    } catch (error) {
      routeWaits.inc({ model: modelLabels.of(input.model) });
      throw error;
    }
  };
}

const AWAY: readonly unknown[] = ['postgres_unavailable', 'commit_unknown'];

function isDatabaseAway(error: unknown): boolean {
  if (error instanceof ApplicationFailure) return AWAY.includes(error.type);
  return isNightshiftError(error) && AWAY.includes(error.code);
}

/** Whether the activity was cancelled because its worker shuts down. */
function isShutDown(): boolean {
  const context = Context.current();
  return context.cancellationSignal.aborted && cancelReasonOf(context) === 'drain';
}
