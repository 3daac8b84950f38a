import {
  ActivityCancellationType,
  continueAsNew,
  proxyActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  LateDelivery,
  ReconcileAction,
  ReconcileActivities,
  ReconcilePageResult,
} from '../activities/reconcile/contract';
import type { SweepActivities, SweepKind } from '../activities/sweep/contract';
import { BATCH_QUEUE } from './contract';

export type { LateDelivery, ReconcileAction } from '../activities/reconcile/contract';

/** Few attempts, because the next scheduled run repeats a page that fails. */
const pages = proxyActivities<
  Pick<ReconcileActivities, 'reconcilePage'> & Pick<SweepActivities, 'sweepPage'>
>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '10m',
  heartbeatTimeout: '30s',
  retry: { initialInterval: '1s', maximumInterval: '10s', maximumAttempts: 5 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  allowEagerDispatch: false,
});

/** Takes as long as a finalization. An operator waits for it, so it reports a failure after few attempts. */
const delivery = proxyActivities<Pick<ReconcileActivities, 'deliverLate'>>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '6h',
  heartbeatTimeout: '60s',
  retry: { initialInterval: '1s', maximumInterval: '30s', maximumAttempts: 5 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  allowEagerDispatch: false,
});

/** Pages in one run: a few hundred events. */
const PAGES_PER_RUN = 50;
/** Actions that a report lists. */
const LISTED_ACTIONS = 200;

/** Input of a reconcile run. */
export interface ReconcileInput {
  readonly dryRun?: boolean;
  /** Asks Temporal about the workflow of every open batch, instead of trusting visibility. */
  readonly thorough?: boolean;
  /** Set by continue-as-new only. */
  readonly resume?: ReconcileResume;
}

/** Where a reconcile run goes on after it has continued as new. */
export interface ReconcileResume {
  readonly afterSeq: number;
  readonly startedAtMs: number;
  readonly report: ReconcileReport;
}

/** What a reconcile run found and did. */
export interface ReconcileReport {
  readonly examined: number;
  readonly errors: number;
  /** Number of actions; `actions` lists the first 200. */
  readonly acted: number;
  readonly actions: readonly ReconcileAction[];
}

/** Compares every open row with its workflow and repairs differences (docs/design/ends.md#reconcile). */
export async function reconcileWorkflow(input: ReconcileInput = {}): Promise<ReconcileReport> {
  const { dryRun = false, thorough = false } = input;
  const startedAtMs = input.resume?.startedAtMs ?? workflowInfo().startTime.getTime();
  let report: ReconcileReport = input.resume?.report ?? NOTHING_FOUND;
  let afterSeq = input.resume?.afterSeq ?? 0;
  for (let page = 0; page < PAGES_PER_RUN; page++) {
    const result = await pages.reconcilePage({
      ...{ afterSeq, dryRun, thorough },
      cycleStartedAtMs: startedAtMs,
    });
    report = withPage(report, result);
    if (result.nextSeq === null) return report;
    afterSeq = result.nextSeq;
  }
  const resume = { afterSeq, startedAtMs, report };
  return continueAsNew<typeof reconcileWorkflow>({ dryRun, thorough, resume });
}

const NOTHING_FOUND: ReconcileReport = { examined: 0, errors: 0, acted: 0, actions: [] };

function withPage(report: ReconcileReport, page: ReconcilePageResult): ReconcileReport {
  return {
    examined: report.examined + page.examined,
    errors: report.errors + page.errors,
    acted: report.acted + page.actions.length,
    actions: [...report.actions, ...page.actions].slice(0, LISTED_ACTIONS),
  };
}

/** Input of a sweep run. */
export interface SweepInput {
  /** Set by continue-as-new only. */
  readonly resume?: SweepResume;
}

/** Where a sweep run goes on after it has continued as new: in the first of `kinds`, after `afterSeq`. */
export interface SweepResume {
  readonly kinds: readonly SweepKind[];
  readonly afterSeq: number;
  readonly removed: SweepReport;
}

/** Number of removed items of each kind. */
export type SweepReport = Readonly<Partial<Record<SweepKind, number>>>;

/** Swept in this order. Rows of files and uploads come after their bytes. */
const KINDS: readonly SweepKind[] = [
  'files',
  'file_rows',
  'scratch',
  'batches',
  'progress',
  'uploads',
  'upload_rows',
  'idempotency_keys',
  'temporary',
];

/** Removes what has passed its retention: objects first, rows last (docs/design/ends.md#sweep). */
export async function sweepWorkflow(input: SweepInput = {}): Promise<SweepReport> {
  const kinds = [...(input.resume?.kinds ?? KINDS)];
  const removed: Partial<Record<SweepKind, number>> = { ...input.resume?.removed };
  let afterSeq = input.resume?.afterSeq ?? 0;
  for (let page = 0; page < PAGES_PER_RUN; page++) {
    const kind = kinds[0];
    if (kind === undefined) return removed;
    const result = await pages.sweepPage({ kind, afterSeq });
    removed[kind] = (removed[kind] ?? 0) + result.removed;
    if (result.nextSeq === null) kinds.shift();
    afterSeq = result.nextSeq ?? 0;
  }
  if (kinds.length === 0) return removed;
  return continueAsNew<typeof sweepWorkflow>({ resume: { kinds, afterSeq, removed } });
}

/** Delivers the files of a batch whose finalization was given up (docs/design/ends.md#late-delivery). */
export async function deliverLateWorkflow(input: {
  readonly batchId: string;
}): Promise<LateDelivery> {
  return delivery.deliverLate(input);
}
