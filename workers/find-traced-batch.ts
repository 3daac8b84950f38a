import type { TracedBatch } from '../platform/tracing/tracing';
import { within } from '../platform/within';
import type { BatchRepository } from '../storage/postgres/batches/repository';

/** Finds what is needed to trace a batch; null if it is unknown or cannot be read now. */
export type FindTracedBatch = (batchId: string) => Promise<TracedBatch | null>;

/** Batches whose place in their trace a worker remembers: it never changes. */
const REMEMBERED = 1_000;
/**
 * Longest wait for the row. The attempt begins after it, and so do its heartbeats: a longer wait would let a
 * worker that is slow to reach PostgreSQL be taken for dead.
 */
const WAIT_MS = 1_000;

/** Reads the row of each batch once. Without PostgreSQL, work on other batches is not traced. */
export function createFindTracedBatch(
  batches: Pick<BatchRepository, 'find'>,
  waitMs = WAIT_MS,
): FindTracedBatch {
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
