import { log } from '@temporalio/activity';
import type { BatchStarter } from '../client/batch-client';
import type { DescribeWorkflow } from '../client/describe';
import type { OrphanVerdict, WorkflowState } from '../core/batch/orphans';
import { judgeOrphan } from '../core/batch/orphans';
import type { StopCause } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import { manifestKey } from '../core/plan/keys';
import type { ObjectStore } from '../storage/object-store';
import type { BatchRecords } from '../storage/postgres/batch-records';
import type { ProgressReporter } from '../storage/postgres/progress';
import type { ReconcileRow, ReconcileRows } from '../storage/postgres/reconcile';
import { asFailure } from './failure';
import { keepAlive, type Liveness } from './liveness';
import type { MaintenanceObserver } from './reconcile-observer';
import type {
  ReconcileAction,
  ReconcileActivities,
  ReconcilePageInput,
  ReconcilePageResult,
  RecoveryAction,
} from './reconcile-types';
import { sideBySide } from './side-by-side';

/** What reconcile needs of the house. */
export interface ReconcileDeps {
  readonly rows: ReconcileRows;
  readonly records: Pick<BatchRecords, 'claimStop'>;
  readonly progress: Pick<ProgressReporter, 'awaitReleased'>;
  readonly store: Pick<ObjectStore, 'head'>;
  /** Starts an id again whose workflow was closed. */
  readonly starter: BatchStarter;
  readonly describe: DescribeWorkflow;
  readonly observer: MaintenanceObserver;
  /** How long a chunk whose workflow is gone may hold on to its range. */
  readonly graceMs: number;
}

const PAGE_ROWS = 100;
const AT_ONCE = 16;

/**
 * One page of reconcile (execution §5): open rows whose workflow is missing or closed get it again,
 * after the cause of their end is claimed where there is one to claim; a cancel that was not taken is
 * signalled once more. Every step may be done twice, also by two workers at once. A batch that fails
 * is counted and left for the next cycle. @throws postgres_unavailable where there is no page
 */
export function createReconcilePage(deps: ReconcileDeps): ReconcileActivities['reconcilePage'] {
  return async (input) => {
    const liveness = keepAlive();
    try {
      return await reconcilePage(deps, input, liveness);
    } catch (error) {
      deps.observer.failed();
      throw asFailure(error);
    } finally {
      liveness.stop();
    }
  };
}

async function reconcilePage(
  deps: ReconcileDeps,
  { afterSeq, dryRun, cycleStartedAtMs }: ReconcilePageInput,
  liveness: Liveness,
): Promise<ReconcilePageResult> {
  const rows = await deps.rows.openPage({ afterSeq, limit: PAGE_ROWS });
  const actions: ReconcileAction[] = [];
  let errors = 0;
  await sideBySide(rows, AT_ONCE, async (row) => {
    liveness.check();
    try {
      const action = await reconcile(deps, row, dryRun);
      if (action === null) return;
      actions.push(action);
      if (!dryRun) deps.observer.recovered(action.action);
    } catch (error) {
      errors++;
      deps.observer.failed();
      log.warn('batch not reconciled', { batchId: row.id, error });
    }
  });
  const nextSeq = rows.length < PAGE_ROWS ? null : (rows.at(-1)?.seq ?? null);
  if (nextSeq === null && !dryRun) deps.observer.cycleEnded(Date.now() - cycleStartedAtMs);
  return { examined: rows.length, actions, errors, nextSeq };
}

async function reconcile(
  deps: ReconcileDeps,
  row: ReconcileRow,
  dryRun: boolean,
): Promise<ReconcileAction | null> {
  const seen = await judge(deps, row);
  if (seen.verdict.kind === 'none') return null;
  if (dryRun) return told(row, seen, await plannedAction(deps, row, seen.verdict));
  if (seen.verdict.kind === 'signal') {
    await deps.starter.cancel(row.id);
    return told(row, seen, 'cancel_signalled');
  }
  await deps.progress.awaitReleased(row.id, deps.graceMs);
  // Waiting took its time: the batch may have ended meanwhile, or somebody else started it again.
  const now = await deps.rows.open(row.id);
  if (now === null) return null;
  const again = await judge(deps, now);
  if (again.verdict.kind !== 'start') return null;
  const action = await startAgain(deps, now, again.verdict.claim);
  return action === null ? null : told(now, again, action);
}

interface Seen {
  readonly workflow: WorkflowState;
  readonly verdict: OrphanVerdict;
}

async function judge(deps: ReconcileDeps, row: ReconcileRow): Promise<Seen> {
  const workflow = await deps.describe(row.id);
  return { workflow, verdict: judgeOrphan(row, workflow, Math.floor(Date.now() / 1000)) };
}

function told(row: ReconcileRow, { workflow }: Seen, action: RecoveryAction): ReconcileAction {
  return { batchId: row.id, status: row.status, workflow, action };
}

/** What would be done, found out without doing anything. */
async function plannedAction(
  deps: ReconcileDeps,
  row: ReconcileRow,
  verdict: OrphanVerdict,
): Promise<RecoveryAction> {
  if (verdict.kind !== 'start') return 'cancel_signalled';
  if (verdict.claim !== null) return (await isSettled(deps, row)) ? 'finalized' : verdict.claim;
  return actionWithoutClaim(row);
}

/** Null where the row turned out to have ended. */
async function startAgain(
  deps: ReconcileDeps,
  row: ReconcileRow,
  claim: StopCause | null,
): Promise<RecoveryAction | null> {
  let action = actionWithoutClaim(row);
  if (claim !== null && (await isSettled(deps, row))) action = 'finalized';
  else if (claim !== null) {
    const verdict = await deps.records.claimStop(row.id, claim);
    if (!verdict.found || isTerminal(verdict.status)) return null;
    action = verdict.stopCause ?? claim;
  }
  await deps.starter.start(row);
  await deps.rows.markStarted(row.id);
  log.info('workflow started again', { batchId: row.id, action });
  return action;
}

function actionWithoutClaim(row: ReconcileRow): RecoveryAction {
  return row.stopCause ?? (row.startSeen ? 'resumed' : 'started');
}

/** A manifest decides the end: what came after it, a closed workflow or the deadline, is no cause. */
async function isSettled({ store }: ReconcileDeps, { id }: ReconcileRow): Promise<boolean> {
  return (await store.head(manifestKey(id))) !== null;
}
