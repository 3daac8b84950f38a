import { randomBytes } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { ERROR_CODES, NightshiftError, type ErrorCode } from '../core/errors';
import { BATCH_QUEUE, deliveryWorkflowId, MAINTENANCE_WORKFLOWS } from '../workflows/contract';
import type { LateDelivery, ReconcileReport } from '../workflows/maintenance';

export type { LateDelivery, ReconcileAction, ReconcileReport } from '../workflows/maintenance';

/** How long an operator waits. */
export interface MaintenanceOptions {
  /** How long a worker may take to begin, ms. */
  readonly startTimeoutMs?: number;
}

const START_TIMEOUT_MS = 30_000;
const CHECK_EVERY_MS = 1_000;

/**
 * Starts a reconcile run on a worker and returns its report. A dry run changes nothing.
 * @throws temporal_unavailable; unavailable if no worker begins in time
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
 * Starts a late delivery on a worker, for a batch that ended without result files, and waits for its result.
 * @throws temporal_unavailable; unavailable if no worker begins in time; not_found, conflict,
 *   plan_unreadable or object_corrupt if the delivery failed
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
  { startTimeoutMs = START_TIMEOUT_MS }: MaintenanceOptions,
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
      rejectUnlessStarted(handle, { startTimeoutMs, signal: watch.signal }),
    ]);
  } catch (error) {
    throw originalError(error);
  } finally {
    watch.abort();
  }
}

/** Rejects if no worker begins in time, and then terminates the workflow. Never resolves. */
async function rejectUnlessStarted(
  handle: WorkflowHandle,
  { startTimeoutMs, signal }: { readonly startTimeoutMs: number; readonly signal: AbortSignal },
): Promise<never> {
  const untilMs = performance.now() + startTimeoutMs;
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS));
    const description = await handle.describe().catch(() => null);
    // The server writes the first two events itself. A worker adds the third.
    if (description !== null && description.historyLength > 2) break;
    if (performance.now() < untilMs) continue;
    await handle.terminate('no worker started it in time').catch(() => undefined);
    throw new NightshiftError(
      'unavailable',
      'No worker started the task. Start a worker, then try again.',
    );
  }
  return new Promise<never>(() => undefined);
}

/** The error that the failed activity threw, before it became a failure of Temporal. */
function originalError(error: unknown): unknown {
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
