import { isTerminal } from '../core/batch/status';
import type { SpanAttributes, TracedBatch, Tracing } from '../platform/tracing/tracing';
import { within } from '../platform/within';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { BatchRow, TerminalRecord } from '../storage/postgres/batches/types';
import type { ActivityDeps } from './wiring';

type Workflows = ActivityDeps['maintenance']['workflows'];

/** Finds what is needed to trace a batch; null if it is unknown or cannot be read now. */
export type FindTraced = (batchId: string) => Promise<TracedBatch | null>;

/** Batches whose place in their trace a worker remembers: it never changes. */
const REMEMBERED = 1_000;
/**
 * Longest wait for the row. The attempt begins after it, and so do its heartbeats: a longer wait would let a
 * worker that is slow to reach PostgreSQL be taken for dead.
 */
const WAIT_MS = 1_000;

/** Reads the row of each batch once. Without PostgreSQL, work on other batches is not traced. */
export function createFindTraced(
  batches: Pick<BatchRepository, 'find'>,
  waitMs = WAIT_MS,
): FindTraced {
  const known = new Map<string, TracedBatch>();
  /** Shared by all attempts of a batch, so a database that hangs gets one statement for each batch. */
  const reading = new Map<string, Promise<TracedBatch | null>>();
  const read = async (batchId: string): Promise<TracedBatch | null> => {
    const row = await batches.find(batchId).catch(() => null);
    if (row === null) return null;
    const { id, tenant, inputFileId, endpoint, createdAtSec, traceContext } = row;
    const found = { id, tenant, inputFileId, endpoint, createdAtSec, traceContext };
    const [oldest] = known.keys();
    if (known.size >= REMEMBERED && oldest !== undefined) known.delete(oldest);
    known.set(batchId, found);
    return found;
  };
  return async (batchId) => {
    const remembered = known.get(batchId);
    if (remembered !== undefined) return remembered;
    const found = reading.get(batchId) ?? read(batchId).finally(() => reading.delete(batchId));
    reading.set(batchId, found);
    return within(waitMs, found, () => null);
  };
}

/** What the wrappers of this file need. */
export interface TraceBatchesDeps {
  readonly tracing: Tracing | null;
  readonly find: FindTraced;
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
