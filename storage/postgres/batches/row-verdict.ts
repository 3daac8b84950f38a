import type { BatchStatus, StopCause } from '../../../core/batch/status';
import type { Database } from '../sql';
import { query } from '../sql';

/** How the row stands after a statement: what the workflow has to obey (execution §4). */
export interface RowVerdict {
  readonly found: boolean;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/** What a guarded update returns: at most one row. */
export type VerdictColumns = Omit<RowVerdict, 'found'>;

/** For `returning` and `select`: the columns of {@link VerdictColumns}. */
export const VERDICT_COLUMNS = `status, stop_cause as "stopCause"`;

/**
 * The verdict of an update that touched `rows`; where it touched none, the row as it stands now.
 * @throws postgres_unavailable
 */
export async function verdictOf(
  database: Database,
  batchId: string,
  rows: readonly VerdictColumns[] = [],
): Promise<RowVerdict> {
  const [row = await standing(database, batchId)] = rows;
  return row === null
    ? { found: false, status: 'validating', stopCause: null }
    : { found: true, status: row.status, stopCause: row.stopCause };
}

async function standing(database: Database, batchId: string): Promise<VerdictColumns | null> {
  const text = `select ${VERDICT_COLUMNS} from batches where id = $1`;
  const [row] = await query<VerdictColumns>(database, text, [batchId]);
  return row ?? null;
}
