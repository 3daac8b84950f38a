import { randomBytes } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { ERROR_CODES, NightshiftError, type ErrorCode } from '../core/errors';
import { BATCH_QUEUE, deliveryWorkflowId, MAINTENANCE_WORKFLOWS } from '../workflows/contract';
import type { LateDelivery, ReconcileReport } from '../workflows/maintenance';

export type { LateDelivery, ReconcileAction, ReconcileReport } from '../workflows/maintenance';

export interface MaintenanceOptions {
  /** How long a worker may take to begin. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

/**
 * Has a worker reconcile now, and waits for what it did; `dryRun` changes nothing.
 * @throws temporal_unavailable, unavailable where no worker takes it up
 */
export function requestReconcile(
  client: Client,
  { dryRun }: { readonly dryRun: boolean },
  options: MaintenanceOptions = {},
): Promise<ReconcileReport> {
  const workflowId = `nightshift-reconcile-by-hand-${randomBytes(6).toString('hex')}`;
  const request = {
    type: MAINTENANCE_WORKFLOWS.reconcile,
    workflowId,
    args: [{ dryRun, thorough: true }],
  };
  return runByWorker<ReconcileReport>(client, request, options);
}

/**
 * Has a worker make the files of a batch that ended without them, and waits for the end.
 * @throws temporal_unavailable, unavailable where no worker takes it up, and what the delivery
 *   failed with: not_found, conflict, plan_unreadable, object_corrupt
 */
export function requestLateDelivery(
  client: Client,
  batchId: string,
  options: MaintenanceOptions = {},
): Promise<LateDelivery> {
  const workflowId = deliveryWorkflowId(batchId);
  const request = { type: MAINTENANCE_WORKFLOWS.deliverLate, workflowId, args: [{ batchId }] };
  return runByWorker<LateDelivery>(client, request, options);
}

interface Request {
  readonly type: string;
  readonly workflowId: string;
  readonly args: unknown[];
}

async function runByWorker<T>(
  client: Client,
  { type, workflowId, args }: Request,
  { patienceMs = PATIENCE_MS }: MaintenanceOptions,
): Promise<T> {
  const options = {
    workflowId,
    args,
    taskQueue: BATCH_QUEUE,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowExecutionTimeout: '1d',
  } as const;
  const handle = await client.workflow.start(type, options).catch((cause: unknown) => {
    throw new NightshiftError('temporal_unavailable', 'No Temporal server answers.', { cause });
  });
  const watch = new AbortController();
  try {
    return await Promise.race([
      handle.result() as Promise<T>,
      unlessTakenUp(handle, { patienceMs, signal: watch.signal }),
    ]);
  } catch (error) {
    throw reasonOf(error);
  } finally {
    watch.abort();
  }
}

/** Rejects when no worker has begun in time; never resolves. What nobody took up is taken back. */
async function unlessTakenUp(
  handle: WorkflowHandle,
  { patienceMs, signal }: { readonly patienceMs: number; readonly signal: AbortSignal },
): Promise<never> {
  const untilMs = performance.now() + patienceMs;
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    const description = await handle.describe().catch(() => null);
    // The first two events are the server's own; a worker adds a third.
    if (description !== null && description.historyLength > 2) break;
    if (performance.now() < untilMs) continue;
    await handle.terminate('no worker took it up').catch(() => undefined);
    throw new NightshiftError('unavailable', 'No worker took it up: start one, then try again.');
  }
  return new Promise<never>(() => undefined);
}

/** The words of the activity that failed, as the error it was before it became a failure. */
function reasonOf(error: unknown): unknown {
  if (!(error instanceof WorkflowFailedError)) return error;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ApplicationFailure && isErrorCode(cause.type)) {
      return new NightshiftError(cause.type, cause.message, { cause: error });
    }
  }
  return error;
}

function isErrorCode(type: string | null | undefined): type is ErrorCode {
  return typeof type === 'string' && Object.hasOwn(ERROR_CODES, type);
}
