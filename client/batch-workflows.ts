import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import { fairnessKey, memoText, summaryText } from '../core/batch/temporal-bounds';
import { EQUAL_WEIGHTS, tenantWeight, type Fairness } from '../core/dispatch/fairness-weights';
import { BATCH_QUEUE, BATCH_WORKFLOW, batchWorkflowId, CANCEL_SIGNAL } from '../workflows/contract';
import type { BatchInput } from '../workflows/contract';
import { initialSearchAttributes } from './search-attributes';

/** What the workflow of a batch is started with. */
export interface BatchStart {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly expiresAtSec: number;
  readonly inputFileId: string;
}

/** Starts and cancels the workflows of batches. */
export interface BatchWorkflows {
  /** Starts the workflow of a batch. Succeeds if Temporal answers that it was started before. */
  start(batch: BatchStart): Promise<void>;
  /** Signals a cancel that is claimed in the row. Succeeds if the workflow is closed or missing. */
  cancel(batchId: string): Promise<void>;
}

/** How workflows are started and called. */
export interface BatchWorkflowsOptions {
  /** A call that takes longer than this fails, ms. */
  readonly callTimeoutMs?: number;
  /** `ALLOW_DUPLICATE` lets reconcile start a batch again after its workflow was closed. */
  readonly reuse?: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE';
  /** Weights of tenants in Temporal's task queues; equal by default. */
  readonly fairness?: Fairness;
}

/**
 * {@link BatchWorkflows} over a Temporal client. Starting is idempotent by workflow id
 * (docs/design/temporal.md#starting-a-batch).
 */
export function createBatchWorkflows(
  client: Client,
  options: BatchWorkflowsOptions = {},
): BatchWorkflows {
  const { callTimeoutMs = 2_000, reuse = 'REJECT_DUPLICATE', fairness = EQUAL_WEIGHTS } = options;
  const withinDeadline = <T>(call: () => Promise<T>): Promise<T> =>
    client.withDeadline(Date.now() + callTimeoutMs, call);
  return {
    start: (batch) => withinDeadline(() => startWorkflow(client, batch, { reuse, fairness })),
    cancel: (batchId) => withinDeadline(() => signalCancel(client, batchId)),
  };
}

async function startWorkflow(
  client: Client,
  batch: BatchStart,
  { reuse, fairness }: Required<Pick<BatchWorkflowsOptions, 'reuse' | 'fairness'>>,
): Promise<void> {
  const input: BatchInput = { batchId: batch.id };
  try {
    await client.workflow.start(BATCH_WORKFLOW, {
      workflowId: batchWorkflowId(batch.id),
      taskQueue: BATCH_QUEUE,
      args: [input],
      workflowIdReusePolicy: reuse,
      workflowIdConflictPolicy: 'USE_EXISTING',
      typedSearchAttributes: initialSearchAttributes(batch),
      memo: { input_file_id: memoText(batch.inputFileId) },
      staticSummary: summary(batch),
      priority: {
        fairnessKey: fairnessKey(batch.tenant, sha256Hex),
        fairnessWeight: tenantWeight(fairness, batch.tenant),
      },
    });
  } catch (error) {
    if (!isAlreadyStarted(error)) throw error;
  }
}

async function signalCancel(client: Client, batchId: string): Promise<void> {
  try {
    await client.workflow.getHandle(batchWorkflowId(batchId)).signal(CANCEL_SIGNAL);
  } catch (error) {
    // The workflow is closed, or not started yet. Every run begins by reading the row, which has the cause.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

function summary(batch: BatchStart): string {
  const due = new Date(batch.expiresAtSec * 1000).toISOString().slice(0, 16).replace('T', ' ');
  // The tenant comes last, because it may be long and the text is cut at its end.
  return summaryText(`${batch.endpoint} · due ${due} UTC · ${batch.tenant}`);
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isAlreadyStarted(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowExecutionAlreadyStartedError';
}
