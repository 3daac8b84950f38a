import type { Pool } from 'pg';
import type { StopCause } from '../../../core/batch/status';
import { legalPredecessors, OPEN_STATUSES } from '../../../core/batch/status';
import { type Database, query } from '../sql';
import { notifyStop } from '../stop-channel';
import { BATCH_COLUMNS, type BatchColumns, CLOCK_SEC, stepSec, toBatchRow } from './columns';
import { getBatch, readState } from './read';
import type { BatchRow, BatchState, CancelClaim } from './types';

/**
 * The first cause of a batch's end is decided here, by one statement (docs/design/ends.md#the-first-cause).
 *
 * The API claims a cancel. The workflow claims `expired`, `failed`, or a cancel that it received from
 * Temporal. Both may happen at the same moment. The row lock orders them: the second statement waits, is
 * then evaluated on the row that the first one wrote, and finds its cause. No process overwrites a cause,
 * and every process obeys the cause that is in the row afterwards. A cancel sets `cancelling` in the same
 * statement, so no reader ever sees one without the other. Listeners are notified when the claim commits.
 *
 * The workflow's claim also notes in `stop_taken_at` that the workflow has received the cause, even if
 * another process claimed it; until then the API repeats its signal. The API's claim does not change a row
 * that has a cause already.
 */
async function claim(
  database: Database,
  { batchId, cause, by }: { batchId: string; cause: StopCause; by: Claimant },
): Promise<BatchRow | null> {
  const isWorkflow = by === 'workflow';
  const [row] = await query<BatchColumns>(
    database,
    `update batches set
       stop_cause = coalesce(stop_cause, $2),
       stop_taken_at = case when $3 then coalesce(stop_taken_at, now()) else stop_taken_at end,
       status = case when stop_cause is null and $2 = 'cancelled' then 'cancelling' else status end,
       cancelling_at = case when stop_cause is null and $2 = 'cancelled'
         then ${stepSec(`coalesce($4::bigint, ${CLOCK_SEC})`)} else cancelling_at end,
       updated_at = now()
     where id = $1 and ($5::text is null or tenant = $5) and ($3 or stop_cause is null)
       and status = any($6)
     returning ${BATCH_COLUMNS}, ${notifyStop('id')}`,
    [
      batchId,
      cause,
      isWorkflow,
      isWorkflow ? null : by.nowSec,
      isWorkflow ? null : by.tenant,
      isWorkflow ? [...OPEN_STATUSES] : legalPredecessors('cancelling'),
    ],
  );
  return row === undefined ? null : toBatchRow(row);
}

/** The workflow of any batch, or a tenant's request with the time on the API server's clock. */
type Claimant = 'workflow' | { readonly tenant: string; readonly nowSec: number };

/**
 * The workflow's claim; returns the state of the row afterwards. A missing or ended row is not an error.
 * @throws postgres_unavailable
 */
export async function claimCause(
  database: Database,
  batchId: string,
  cause: StopCause,
): Promise<BatchState> {
  const row = await claim(database, { batchId, cause, by: 'workflow' });
  if (row === null) return readState(database, batchId);
  return { found: true, status: row.status, stopCause: row.stopCause };
}

/** The API's claim of a cancel. Null if the tenant has no such batch. @throws postgres_unavailable */
export async function claimCancel(
  pool: Pool,
  { id, tenant, nowSec }: { id: string; tenant: string; nowSec: number },
): Promise<CancelClaim | null> {
  const claimed = await claim(pool, {
    batchId: id,
    cause: 'cancelled',
    by: { tenant, nowSec },
  });
  if (claimed !== null) return { claimed: true, batch: claimed };
  // A second statement sees what the earlier claim has written.
  const batch = await getBatch(pool, id, tenant);
  return batch === null ? null : { claimed: false, batch };
}
