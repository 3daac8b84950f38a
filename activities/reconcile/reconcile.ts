import { log } from '@temporalio/activity';
import type { BatchWorkflows } from '../../client/batch-workflows';
import type { DescribeWorkflow } from '../../client/describe-workflow';
import { isRestartedInVain } from '../../core/batch/last-resort';
import type { OrphanVerdict, WorkflowState } from '../../core/batch/orphans';
import { judgeOrphan } from '../../core/batch/orphans';
import type { StopCause } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import { manifestKey } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import { asFailure } from '../runtime/failure';
import { startHeartbeat, type Heartbeat } from '../runtime/heartbeat';
import { endWithoutWorkflow, type EndDeps } from './end';
import type { MaintenanceObserver } from './observer';
import type {
  ReconcileAction,
  ReconcileActivities,
  ReconcilePageInput,
  ReconcilePageResult,
  RecoveryAction,
} from './types';
import { scanOpenRows, withOverdue, type ScanDeps } from './scan';
import { mapConcurrently } from '../../core/async/map-concurrently';

/** What reconcile needs of the house. */
export interface ReconcileDeps extends EndDeps, ScanDeps {
  readonly batches: Pick<
    BatchRepository,
    | 'openPage'
    | 'findOpen'
    | 'markStarted'
    | 'noteRestart'
    | 'addOverdue'
    | 'resetOverdue'
    | 'claimCause'
    | 'recordUnfinalized'
  >;
  readonly progress: Pick<ProgressReporter, 'awaitReleased'>;
  readonly store: Pick<ObjectStore, 'head'>;
  /** Starts an id again whose workflow was closed. */
  readonly batchWorkflows: BatchWorkflows;
  readonly describe: DescribeWorkflow;
  readonly observer: MaintenanceObserver;
  /** How long a chunk whose workflow is gone may hold on to its range. */
  readonly graceMs: number;
  /** How long a batch may be overdue before it is ended without its workflow. */
  readonly finalizeWindowMs: number;
}

const AT_ONCE = 16;
/** No further batch of a page is ended after this: those left are the next cycle's. */
const ENDING_MS = 3 * 60_000;
const ENDING_GRACE_MS = 60_000;

/**
 * One page of reconcile: open rows whose workflow is missing or closed get it again, after the cause of
 * their end is claimed where there is one to claim; a cancel that was not taken is signalled once more.
 * What restarting does not end, or is long overdue, is ended without its workflow. Every step may be done
 * twice, also by two workers at once. A batch that fails is counted and left for the next cycle.
 * @throws postgres_unavailable where there is no page
 */
export function createReconcilePage(deps: ReconcileDeps): ReconcileActivities['reconcilePage'] {
  return async (input) => {
    const liveness = startHeartbeat();
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
  input: ReconcilePageInput,
  liveness: Heartbeat,
): Promise<ReconcilePageResult> {
  const { dryRun, cycleStartedAtMs } = input;
  const { suspects, examined, nextSeq } = await scanOpenRows(deps, input);
  const rows = dryRun ? suspects : await withOverdue(deps, suspects);
  const actions: ReconcileAction[] = [];
  const toEnd: OpenBatch[] = [];
  let errors = 0;
  const attempt = async (row: OpenBatch, work: () => Promise<ReconcileAction | null>) => {
    liveness.check();
    try {
      const action = await work();
      if (action === null) return;
      actions.push(action);
      if (!dryRun) deps.observer.recovered(action.action);
    } catch (error) {
      errors++;
      deps.observer.failed();
      log.warn('batch not reconciled', { batchId: row.id, error });
    }
  };
  await mapConcurrently(rows, AT_ONCE, (row) =>
    attempt(row, () => reconcile(deps, row, { dryRun, end: () => void toEnd.push(row) })),
  );
  const untilMs = performance.now() + ENDING_MS;
  for (const row of toEnd) {
    if (performance.now() < untilMs) await attempt(row, () => end(deps, row, liveness));
  }
  if (nextSeq === null && !dryRun) deps.observer.cycleEnded(Date.now() - cycleStartedAtMs);
  return { examined, actions, errors, nextSeq };
}

/** `end` is told of a batch whose workflow will not end it. */
async function reconcile(
  deps: ReconcileDeps,
  row: OpenBatch,
  { dryRun, end }: { dryRun: boolean; end: () => void },
): Promise<ReconcileAction | null> {
  const isExhausted = row.overdueMs > 0 && row.overdueMs >= deps.finalizeWindowMs;
  // A server that cannot tell of this one workflow must not keep its row open.
  const seen = await judge(deps, row).catch((error: unknown) => {
    if (isExhausted) return UNKNOWN;
    throw error;
  });
  if (isExhausted || isRestartedInVain(row, seen.workflow, Math.floor(Date.now() / 1000))) {
    if (dryRun) return told(row, seen, 'ended');
    end();
    return null;
  }
  if (seen.verdict.kind === 'none') return null;
  if (dryRun) return told(row, seen, await plannedAction(deps, row, seen.verdict));
  if (seen.verdict.kind === 'signal') {
    await deps.batchWorkflows.cancel(row.id);
    return told(row, seen, 'cancel_signalled');
  }
  await deps.progress.awaitReleased(row.id, deps.graceMs);
  // Waiting took its time: the batch may have ended meanwhile, or somebody else started it again.
  const now = await deps.batches.findOpen(row.id);
  if (now === null) return null;
  const again = await judge(deps, now);
  if (again.verdict.kind !== 'start') return null;
  if (again.workflow === 'closed') await deps.batches.noteRestart(row.id);
  const action = await startAgain(deps, now, again.verdict.claim);
  return action === null ? null : told(now, again, action);
}

/** Null where it has ended by itself. */
async function end(
  deps: ReconcileDeps,
  row: OpenBatch,
  liveness: Heartbeat,
): Promise<ReconcileAction | null> {
  await deps.progress.awaitReleased(row.id, Math.min(deps.graceMs, ENDING_GRACE_MS));
  const now = await deps.batches.findOpen(row.id);
  if (now === null) return null;
  const late = Date.now() / 1000 >= now.expiresAtSec ? 'expired' : 'failed';
  const cause = now.stopCause ?? (isAnswered(now) ? null : late);
  try {
    const status = await endWithoutWorkflow(deps, now, { cause, check: () => liveness.check() });
    if (status === null) return null;
    deps.observer.ended(status);
  } catch (error) {
    // Its files are tried again, not with every cycle.
    await deps.batches.resetOverdue(row.id);
    throw error;
  }
  return told(now, await judge(deps, now).catch(() => UNKNOWN), 'ended');
}

const UNKNOWN: Seen = { workflow: 'running', verdict: { kind: 'none' } };

interface Seen {
  readonly workflow: WorkflowState;
  readonly verdict: OrphanVerdict;
}

async function judge(deps: ReconcileDeps, row: OpenBatch): Promise<Seen> {
  const workflow = await deps.describe(row.id);
  return { workflow, verdict: judgeOrphan(row, workflow, Math.floor(Date.now() / 1000)) };
}

function told(row: OpenBatch, { workflow }: Seen, action: RecoveryAction): ReconcileAction {
  return { batchId: row.id, status: row.status, workflow, action };
}

/** What would be done, found out without doing anything. */
async function plannedAction(
  deps: ReconcileDeps,
  row: OpenBatch,
  verdict: OrphanVerdict,
): Promise<RecoveryAction> {
  if (verdict.kind !== 'start') return 'cancel_signalled';
  if (verdict.claim !== null) return (await isSettled(deps, row)) ? 'finalized' : verdict.claim;
  return actionWithoutClaim(row);
}

/** Null where the row turned out to have ended. */
async function startAgain(
  deps: ReconcileDeps,
  row: OpenBatch,
  claim: StopCause | null,
): Promise<RecoveryAction | null> {
  let action = actionWithoutClaim(row);
  if (claim !== null && (await isSettled(deps, row))) action = 'finalized';
  else if (claim !== null) {
    const verdict = await deps.batches.claimCause(row.id, claim);
    if (!verdict.found || isTerminal(verdict.status)) return null;
    action = verdict.stopCause ?? claim;
  }
  await deps.batchWorkflows.start(row);
  await deps.batches.markStarted(row.id);
  log.info('workflow started again', { batchId: row.id, action });
  return action;
}

function actionWithoutClaim(row: OpenBatch): RecoveryAction {
  return row.stopCause ?? (row.startSeen ? 'resumed' : 'started');
}

/** A manifest decides the end: what came after it, a closed workflow or the deadline, is no cause. */
async function isSettled({ store }: ReconcileDeps, row: OpenBatch): Promise<boolean> {
  return isAnswered(row) || (await store.head(manifestKey(row.id))) !== null;
}

/** Its workflow found every line settled, under no cause, and was making the manifest. */
function isAnswered({ status, stopCause }: OpenBatch): boolean {
  return status === 'finalizing' && stopCause === null;
}
