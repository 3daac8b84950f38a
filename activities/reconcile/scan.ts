import { log } from '@temporalio/activity';
import type { ListRunning } from '../../client/list-running';
import { isSuspect } from '../../core/batch/last-resort';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ReconcilePageInput } from './types';

/** What finding suspects takes. */
export interface ScanDeps {
  readonly batches: Pick<BatchRepository, 'openPage' | 'addOverdue'>;
  readonly listRunning: ListRunning;
  /** How long after its deadline a batch may take to end. */
  readonly overdueAfterSec: number;
}

/** Open rows whose workflows are to be asked for. */
export interface OpenRows {
  readonly suspects: readonly OpenBatch[];
  readonly examined: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}

/** Looked at in one page; of 10,000 open batches nearly all run, and visibility says so in ten calls. */
const SCAN_ROWS = 10_000;
/** Asked for in one page. */
const PAGE_ROWS = 100;
const CYCLE_MS = 60_000;

/** One page of open rows without those that visibility says run. @throws postgres_unavailable */
export async function scanOpenRows(deps: ScanDeps, input: ReconcilePageInput): Promise<OpenRows> {
  const running = input.thorough === true ? null : await listed(deps);
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

/** Rows with the time for which they have been overdue by now; a dry run adds nothing to it. */
export async function withOverdue(
  { batches, overdueAfterSec }: ScanDeps,
  suspects: readonly OpenBatch[],
): Promise<OpenBatch[]> {
  const nowSec = Date.now() / 1000;
  const late = suspects.filter((row) => nowSec >= row.expiresAtSec + overdueAfterSec);
  if (late.length === 0) return [...suspects];
  const sums = await batches.addOverdue(late.map(({ id }) => id));
  return suspects.map((row) => ({ ...row, overdueMs: sums.get(row.id) ?? row.overdueMs }));
}

/** Without visibility every workflow is asked for. */
async function listed({ listRunning }: ScanDeps): Promise<ReadonlySet<string> | null> {
  try {
    return await listRunning();
  } catch (error) {
    log.warn('running workflows not listed', { error });
    return null;
  }
}

function suspicion(
  { overdueAfterSec: graceSec }: ScanDeps,
  { cycleStartedAtMs }: ReconcilePageInput,
  running: ReadonlySet<string>,
): (row: OpenBatch) => boolean {
  const cycle = Math.floor(cycleStartedAtMs / CYCLE_MS);
  const nowSec = Math.floor(Date.now() / 1000);
  return (row) => {
    const cancelUntaken = row.stopCause === 'cancelled' && !row.stopTaken;
    const listedRow = { ...row, isListed: running.has(row.id), cancelUntaken };
    return isSuspect(listedRow, { nowSec, cycle, graceSec });
  };
}
