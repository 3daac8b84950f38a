import { Context } from '@temporalio/activity';
import {
  ApplicationFailure,
  ApplicationFailureCategory,
  CancelledFailure,
} from '@temporalio/common';
import type { OpenSpan, SpanAttributes } from '../platform/tracing/tracing';
import type { TraceBatchesDeps } from './trace-batches';
import type { StepActivities } from './wiring';

/** The span of an activity of a batch. */
interface Step<I, O> {
  readonly name: string;
  readonly given?: (input: I) => SpanAttributes;
  readonly found?: (result: O) => SpanAttributes;
}

/**
 * The same activities. Each attempt that works on a batch is a span below `process-batch`; an attempt that
 * only waits leaves none. Without tracing they are returned as they are
 * (docs/design/tracing.md#trace-of-a-batch).
 */
export function traceActivities(
  activities: StepActivities,
  { tracing, find }: TraceBatchesDeps,
): StepActivities {
  if (tracing === null) return activities;
  const traced =
    <I extends { readonly batchId: string }, O>(
      run: (input: I) => Promise<O>,
      { name, given, found }: Step<I, O>,
    ) =>
    async (input: I): Promise<O> => {
      const batch = await find(input.batchId);
      const attributes = { ...attemptAttributes(), ...given?.(input) };
      const span = batch === null ? null : tracing.beginStep(name, batch, attributes);
      return span === null ? run(input) : inSpan(span, () => run(input), found);
    };
  return {
    ...activities,
    ingest: traced(activities.ingest, INGEST),
    executeChunk: traced(activities.executeChunk, EXECUTE),
    endUnrouted: traced(activities.endUnrouted, END_UNROUTED),
    awaitReleased: traced(activities.awaitReleased, { name: 'await-released' }),
    finalize: traced(activities.finalize, FINALIZE),
    recordUnfinalized: traced(activities.recordUnfinalized, { name: 'record-unfinalized' }),
    deliverLate: traced(activities.deliverLate, { name: 'deliver-late' }),
    sweepPage: (input) => {
      const span = tracing.beginTrace('sweep', { 'sweep.kind': input.kind });
      return inSpan(
        span,
        () => activities.sweepPage(input),
        ({ removed }) => (removed === 0 ? null : { 'sweep.removed': removed }),
      );
    },
  };
}

const INGEST: Step<unknown, Awaited<ReturnType<StepActivities['ingest']>>> = {
  name: 'ingest-and-plan',
  found: (result) =>
    result.kind === 'invalid'
      ? { 'batch.input.error_count': result.errorCount }
      : { 'batch.input.line_count': result.lineCount, 'batch.model.count': result.models.length },
};

type ChunkInput = Parameters<StepActivities['executeChunk']>[0];
type ChunkResult = Awaited<ReturnType<StepActivities['endUnrouted']>>;

const chunkAttributes = ({ model, from, to }: ChunkInput): SpanAttributes => ({
  'gen_ai.request.model': model,
  'chunk.from': from,
  'chunk.to': to,
});

const chunkResult = (result: ChunkResult): SpanAttributes => ({
  'chunk.next': result?.next,
  'chunk.answered': result?.answered,
  'chunk.completed': result?.completed,
  'chunk.failed': result?.failed,
  'chunk.exit_reason': result?.left,
});

const EXECUTE: Step<ChunkInput, ChunkResult> = {
  name: 'execute-chunk',
  given: chunkAttributes,
  found: chunkResult,
};

const END_UNROUTED = { ...EXECUTE, name: 'end-unrouted' };

const FINALIZE: Step<
  { readonly cause: string | null },
  Awaited<ReturnType<StepActivities['finalize']>>
> = {
  name: 'finalize',
  given: ({ cause }) => ({ 'batch.stop_cause': cause }),
  found: (result) =>
    result.kind === 'done'
      ? { 'batch.status': result.status }
      : { 'finalize.unanswered_ranges': result.holes.length },
};

/** The attempt as Temporal knows it, and how long it waited for this worker. */
function attemptAttributes(): SpanAttributes {
  const { attempt, workflowExecution, taskQueue, currentAttemptScheduledTimestampMs } =
    Context.current().info;
  return {
    'temporal.activity.attempt': attempt,
    'temporal.workflow.run_id': workflowExecution?.runId,
    'temporal.task_queue': taskQueue,
    'temporal.schedule_to_start_ms': Math.max(0, Date.now() - currentAttemptScheduledTimestampMs),
  };
}

/** @param found attributes of the result; null if nothing was done that is worth a span */
async function inSpan<T>(
  span: OpenSpan,
  work: () => Promise<T>,
  found?: (result: T) => SpanAttributes | null,
): Promise<T> {
  try {
    const result = await span.run(work);
    const attributes = found === undefined ? {} : found(result);
    if (attributes === null) span.discard();
    else {
      span.set(attributes);
      span.end();
    }
    return result;
  } catch (error) {
    endFailed(span, error);
    throw error;
  }
}

function endFailed(span: OpenSpan, error: unknown): void {
  // The attempt could send nothing: the chunk waits at the server, perhaps for hours.
  const isWaiting =
    error instanceof ApplicationFailure && error.category === ApplicationFailureCategory.BENIGN;
  if (isWaiting) return span.discard();
  if (error instanceof CancelledFailure) span.set({ 'temporal.activity.cancelled': true });
  else span.fail(error);
  span.end();
}
