import { withHeartbeat } from '../runtime/with-heartbeat';
import type { SweepActivities, SweepKind } from './contract';
import { createLostRowsCheck, unlessRowsAreLost } from './lost-rows';
import type { SweepDeps, Sweeper } from './ports';
import { clearBatches, removeBatches } from './sweep-batches';
import { createCrashSweeper } from './sweep-crashes';
import { clearUploads, emptyFiles, sweepRows } from './sweep-rows';

/**
 * One page of the sweep (docs/design/ends.md#sweep). Objects are removed first, and the row or the mark in
 * it last, so an interrupted page is repeated completely. Open batches are never swept.
 * @throws postgres_unavailable, object_store_failed
 */
export function createSweepPage(deps: SweepDeps): SweepActivities['sweepPage'] {
  const areRowsLost = createLostRowsCheck();
  const sweepers: Readonly<Record<SweepKind, Sweeper>> = {
    files: unlessRowsAreLost(emptyFiles, areRowsLost),
    file_rows: sweepRows((rows, limit) => rows.removeFiles(limit)),
    scratch: clearBatches,
    batches: removeBatches,
    progress: sweepRows((rows, limit) => rows.removeStaleProgress(limit)),
    uploads: unlessRowsAreLost(clearUploads, areRowsLost),
    upload_rows: sweepRows((rows, limit) => rows.removeUploads(limit)),
    idempotency_keys: sweepRows((rows, limit) => rows.removeIdempotencyKeys(limit)),
    temporary: unlessRowsAreLost(createCrashSweeper(), areRowsLost),
  };
  return (input) =>
    withHeartbeat(async (heartbeat) => {
      const result = await sweepers[input.kind](deps, input, () => heartbeat.check());
      if (result.removed > 0) deps.observer.removed(input.kind, result.removed);
      return result;
    });
}
