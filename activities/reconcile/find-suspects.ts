import { log } from '@temporalio/activity';
import { mustDescribe } from '../../core/batch/last-resort';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ReconcilePageInput } from './contract';
import type { BatchWorkflows } from './ports';

/** What {@link findSuspects} needs. */
export interface FindSuspectsDeps {
  readonly batches: Pick<BatchRepository, 'openPage' | 'addOverdue'>;
  readonly workflows: Pick<BatchWorkflows, 'listRunning'>;
  /** How long after its deadline a batch may take to end, s. */
  readonly overdueAfterSec: number;
}

/** Open batches whose workflows must be described. */
export interface Suspects {
  readonly suspects: readonly OpenBatch[];
  readonly examined: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}

/** Rows read for one page. Visibility lists 10,000 running batches in ten calls. */
const SCAN_ROWS = 10_000;
/** Most suspects of one page. */
const PAGE_ROWS = 100;
const CYCLE_MS = 60_000;

/**
 * Returns one page of open batches whose workflows must be described. Most batches that run according to
 * visibility are left out. @throws postgres_unavailable
 */
export async function findSuspects(
  deps: FindSuspectsDeps,
  input: ReconcilePageInput,
): Promise<Suspects> {
  const running = input.thorough === true ? null : await listRunning(deps);
  const limit = running === null ? PAGE_ROWS : SCAN_ROWS;
  const rows = await deps.batches.openPage({ afterSeq: input.afterSeq, limit });
  const found = running === null ? rows : rows.filter(suspicion(deps, input, running));
  const suspects = found.slice(0, PAGE_ROWS);
  if (suspects.length < found.length) {
    const last = suspects.at(-1);
    const examined = last === undefined ? 0 : rows.indexOf(last) + 1;
    return { suspects, examined, nextSeq: last?.seq ?? null };
  }
  const nextSeq = rows.length < limit ? null : (rows.at(-1)?.seq ?? null);
  return { suspects, examined: rows.length, nextSeq };
}

/** Adds to the overdue time of suspects that are past deadline and grace. Returns all with their sums. */
export async function addOverdueTime(
  { batches, overdueAfterSec }: FindSuspectsDeps,
  suspects: readonly OpenBatch[],
): Promise<OpenBatch[]> {
  const nowSec = Date.now() / 1000;
  const overdue = suspects.filter((batch) => nowSec >= batch.expiresAtSec + overdueAfterSec);
  if (overdue.length === 0) return [...suspects];
  const sums = await batches.addOverdue(overdue.map(({ id }) => id));
  return suspects.map((batch) => ({ ...batch, overdueMs: sums.get(batch.id) ?? batch.overdueMs }));
}

/** Null if visibility does not answer. Then every workflow is described. */
async function listRunning({ workflows }: FindSuspectsDeps): Promise<ReadonlySet<string> | null> {
  try {
    return await workflows.listRunning();
  } catch (error) {
    log.warn('running workflows not listed', { error });
    return null;
  }
}

function suspicion(
  { overdueAfterSec: graceSec }: FindSuspectsDeps,
  { cycleStartedAtMs }: ReconcilePageInput,
  running: ReadonlySet<string>,
): (batch: OpenBatch) => boolean {
  const cycle = Math.floor(cycleStartedAtMs / CYCLE_MS);
  const nowSec = Math.floor(Date.now() / 1000);
  return (batch) => {
    const cancelUntaken = batch.stopCause === 'cancelled' && !batch.stopTaken;
    const listedRow = { ...batch, isListed: running.has(batch.id), cancelUntaken };
    return mustDescribe(listedRow, { nowSec, cycle, graceSec });
  };
}
