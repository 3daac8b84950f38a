import { isTerminal } from '../core/batch/status';
import type { SpanAttributes, Tracing } from '../platform/tracing/tracing';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { BatchRow, TerminalRecord } from '../storage/postgres/batches/types';
import type { FindTracedBatch } from './find-traced-batch';
import type { ActivityDeps } from './wiring';

type Workflows = ActivityDeps['maintenance']['workflows'];

/** What the wrappers of this file need. */
export interface TraceBatchesDeps {
  readonly tracing: Tracing | null;
  readonly find: FindTracedBatch;
}

/**
 * The same repository. Recording the end of a batch also records its span `process-batch`, whether the
 * workflow or reconcile ends it.
 */
export function traceEnds(
  batches: BatchRepository,
  { tracing, find }: TraceBatchesDeps,
): BatchRepository {
  if (tracing === null) return batches;
  const record = async (id: string, attributes: SpanAttributes, error?: Error): Promise<void> => {
    const batch = await find(id);
    if (batch !== null) {
      tracing.recordBatch(batch, { attributes, ...(error === undefined ? {} : { error }) });
    }
  };
  return {
    ...batches,
    recordEnd: async (end) => {
      const status = await batches.recordEnd(end);
      const attributes = { 'batch.status': status, ...attributesOf(end) };
      await record(end.batchId, attributes, status === 'failed' ? errorOf(end.errors) : undefined);
      return status;
    },
    recordUnfinalized: async (batchId, cause) => {
      const state = await batches.recordUnfinalized(batchId, cause);
      if (!isTerminal(state.status)) return state;
      const row = await batches.find(batchId).catch(() => null);
      const attributes = { 'batch.status': state.status, ...(row === null ? {} : rowCounts(row)) };
      await record(batchId, attributes, new Error('the result files could not be made'));
      return state;
    },
  };
}

/** The same calls. Each start of a workflow by reconcile is the span `re-enqueue` of its batch. */
export function traceRestarts(
  workflows: Workflows,
  { tracing, find }: TraceBatchesDeps,
): Workflows {
  if (tracing === null) return workflows;
  return {
    ...workflows,
    start: async (batch) => {
      const traced = await find(batch.id);
      const span = traced === null ? null : tracing.beginStep('re-enqueue', traced, {});
      try {
        await workflows.start(batch);
      } catch (error) {
        span?.fail(error);
        throw error;
      } finally {
        span?.end();
      }
    },
  };
}

function attributesOf({ cause, counts, outputFile, errorFile }: TerminalRecord): SpanAttributes {
  return {
    'batch.stop_cause': cause,
    'batch.output_file.id': outputFile?.id,
    'batch.error_file.id': errorFile?.id,
    ...countAttributes(counts),
  };
}

function rowCounts({ stopCause, counts, outputFileId, errorFileId }: BatchRow): SpanAttributes {
  return {
    'batch.stop_cause': stopCause,
    'batch.output_file.id': outputFileId,
    'batch.error_file.id': errorFileId,
    ...countAttributes(counts),
  };
}

function countAttributes({ total, completed, failed }: BatchRow['counts']): SpanAttributes {
  return {
    'batch.request.total': total,
    'batch.request.completed': completed,
    'batch.request.failed': failed,
  };
}

/** Codes only: the messages quote what clients sent. */
function errorOf(errors: TerminalRecord['errors']): Error {
  return new Error(errors?.[0]?.code ?? 'system_error');
}
