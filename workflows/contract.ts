import type { PlannedDelegate } from '../activities/delegate/planned-delegate';
import type { OpenRange } from '../core/chunks/open-ranges';
import { fnv64Hex } from '../core/names/fnv';

/*
 * Names and shapes that clients and workflows share. The API process loads this file, so it must not
 * import workflow code. Temporal stores the inputs and results below: their fields keep their names
 * (docs/design/temporal.md#wire-names).
 */

/** Type of the workflow of one batch. */
export const BATCH_WORKFLOW = 'batchWorkflow';

/** Types of the workflows that maintain all batches together (docs/design/ends.md#reconcile). */
export const MAINTENANCE_WORKFLOWS = {
  reconcile: 'reconcileWorkflow',
  sweep: 'sweepWorkflow',
  deliverLate: 'deliverLateWorkflow',
} as const;

/** Signal that cancels a batch; repeating it changes nothing (docs/design/temporal.md#cancel-signal). */
export const CANCEL_SIGNAL = 'cancelBatch';

/** Task queue of workflows and of all activities except chunks. */
export const BATCH_QUEUE = 'nightshift-batch';

/** Task queue of the chunks of all models without a gateway of their own; every worker serves it. */
export const EXEC_QUEUE = 'nightshift-exec';

/** Bytes of a queue name that come from the model's name; Temporal allows 1,000 in all. */
const MAX_QUEUE_MODEL_BYTES = 768;
/** Control characters and lone surrogates. */
const NOT_IN_QUEUE_NAMES = /[\u0000-\u001f\u007f-\u009f\p{Cs}]/gu;

/**
 * Task queue for the chunks of one model that has a gateway of its own. It depends only on the model's
 * name, so that other entries of `model_gateways` can change without moving it. A name that Temporal
 * would not accept is percent-encoded, cut, and ends in a hash (docs/design/execution.md#task-queues).
 */
export function modelQueue(model: string): string {
  const plain = model.replace(NOT_IN_QUEUE_NAMES, '\ufffd');
  const code = encodeURIComponent(plain);
  if (plain === model && code.length <= MAX_QUEUE_MODEL_BYTES) return `${EXEC_QUEUE}.${model}`;
  return `${EXEC_QUEUE}.${code.slice(0, MAX_QUEUE_MODEL_BYTES)}-${fnv64Hex(model)}`;
}

/** Task queue of a provider: the workers that have it in their settings serve it. */
export function delegateQueue(provider: string): string {
  return `nightshift-delegate.${provider}`;
}

/** The workflow's id is the batch's id (docs/design/temporal.md#workflow-ids). */
export function batchWorkflowId(batchId: string): string {
  return batchId;
}

/** Id of the workflow that delivers a batch late: one per batch at a time. */
export function deliveryWorkflowId(batchId: string): string {
  return `nightshift-deliver-${batchId}`;
}

/** Search attributes of every batch, with the types under which the server registers them. */
export const SEARCH_ATTRIBUTES = {
  BatchTenant: 'Keyword',
  BatchPhase: 'Keyword',
  BatchStopReason: 'Keyword',
  BatchEndpoint: 'Keyword',
  BatchModels: 'KeywordList',
  BatchDeadline: 'Datetime',
  BatchRequests: 'Int',
  BatchProviders: 'KeywordList',
} as const;

/** The same attributes as typed keys for upserts inside a workflow. */
export const SEARCH_KEYS = {
  phase: { name: 'BatchPhase', type: 'KEYWORD' },
  stopReason: { name: 'BatchStopReason', type: 'KEYWORD' },
  models: { name: 'BatchModels', type: 'KEYWORD_LIST' },
  requests: { name: 'BatchRequests', type: 'INT' },
  providers: { name: 'BatchProviders', type: 'KEYWORD_LIST' },
} as const;

/** Input of the workflow of a batch. */
export interface BatchInput {
  readonly batchId: string;
  /** Set by continue-as-new only. */
  readonly resume?: BatchResume;
}

/** What a run hands to the next one: open ranges, never answers. */
export interface BatchResume {
  readonly nonce: string;
  readonly lineCount: number;
  readonly unroutedLines: number;
  readonly models: readonly ResumedModel[];
  /**
   * When the first run of the batch began, Unix ms: the age of a batch spans its runs. Missing in
   * histories from before this field.
   */
  readonly startedAtMs?: number;
  /** The namespace has `BatchProviders`. Set only if a provider runs part of the batch. */
  readonly showsProviders?: boolean;
}

/** One model when a workflow continues as new. */
export interface ResumedModel {
  /** Safe model name: the model's name in object keys. */
  readonly safe: string;
  readonly model: string;
  readonly entries: number;
  readonly queue: string;
  readonly requestTimeoutMs: number;
  /** Ranges without an answer. */
  readonly open: readonly OpenRange[];
  readonly completed: number;
  readonly failed: number;
  /** No worker could send it when the file was read, and it has not been looked up again yet. */
  readonly undecided?: boolean;
  /** It goes through a provider's batch API first. */
  readonly delegate?: PlannedDelegate;
}

/** What a finished workflow shows in the UI. */
export interface BatchResult {
  readonly status: string;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
}
