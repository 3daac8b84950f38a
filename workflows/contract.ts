import { fnv64Hex } from '../core/names/fnv';

/**
 * Names and shapes shared by those who start batches and those who run them. Nothing here may pull
 * in workflow code: the API process loads this file.
 */
export const BATCH_WORKFLOW = 'batchWorkflow';

/** Workflows that look after all batches together (execution §5). */
export const MAINTENANCE_WORKFLOWS = {
  reconcile: 'reconcileWorkflow',
  sweep: 'sweepWorkflow',
  deliverLate: 'deliverLateWorkflow',
} as const;

/** Asks a batch to stop; durable with no worker up, any number of times (temporal §1.1). */
export const CANCEL_SIGNAL = 'cancelBatch';

/** Queue of workflows, ingestion, finalization and records. */
export const BATCH_QUEUE = 'nightshift-batch';

/** Queue of chunks that every worker serves: of models that have no gateway of their own. */
export const EXEC_QUEUE = 'nightshift-exec';

/** Most bytes of a queue's name that are a model's own; Temporal allows 1,000 in all. */
const MAX_QUEUE_MODEL_BYTES = 768;
/** Control characters and halves of surrogate pairs. */
const NOT_IN_QUEUE_NAMES = /[\u0000-\u001f\u007f-\u009f\p{Cs}]/gu;

/**
 * Task queue for the chunks of one model that has a gateway of its own. It depends on the model's name
 * alone, so that other entries of `model_gateways` can come, go and change without moving it. Names
 * that a queue cannot have are percent-encoded, cut, and end in a hash.
 */
export function modelQueue(model: string): string {
  const plain = model.replace(NOT_IN_QUEUE_NAMES, '\ufffd');
  const code = encodeURIComponent(plain);
  if (plain === model && code.length <= MAX_QUEUE_MODEL_BYTES) return `${EXEC_QUEUE}.${model}`;
  return `${EXEC_QUEUE}.${code.slice(0, MAX_QUEUE_MODEL_BYTES)}-${fnv64Hex(model)}`;
}

/** The workflow's id is the batch's id (design §5). */
export function batchWorkflowId(batchId: string): string {
  return batchId;
}

/** A late delivery of a batch has one workflow at a time. */
export function deliveryWorkflowId(batchId: string): string {
  return `nightshift-deliver-${batchId}`;
}

/** Search attributes of every batch and their types, as the server wants them. */
export const SEARCH_ATTRIBUTES = {
  BatchTenant: 'Keyword',
  BatchPhase: 'Keyword',
  BatchStopReason: 'Keyword',
  BatchEndpoint: 'Keyword',
  BatchModels: 'KeywordList',
  BatchDeadline: 'Datetime',
  BatchRequests: 'Int',
} as const;

/** The same attributes as typed keys for upserts inside a workflow. */
export const SEARCH_KEYS = {
  phase: { name: 'BatchPhase', type: 'KEYWORD' },
  stopReason: { name: 'BatchStopReason', type: 'KEYWORD' },
  models: { name: 'BatchModels', type: 'KEYWORD_LIST' },
  requests: { name: 'BatchRequests', type: 'INT' },
} as const;

export interface BatchInput {
  readonly batchId: string;
  /** Set by continue-as-new only. */
  readonly resume?: BatchResume;
}

/** What a run hands to the next: open ranges, never answers. */
export interface BatchResume {
  readonly nonce: string;
  readonly lineCount: number;
  readonly unroutedLines: number;
  readonly models: readonly ResumedModel[];
  /**
   * When the first run of the batch began, Unix ms: the age of a batch outlives its runs. Missing in
   * histories that were recorded before it was carried along.
   */
  readonly startedAtMs?: number;
}

/** What is left of one model when a workflow continues as new. */
export interface ResumedModel {
  readonly safe: string;
  readonly model: string;
  readonly entries: number;
  readonly queue: string;
  readonly requestTimeoutMs: number;
  /** Ranges without a complete answer, as pairs `[from, to)`. */
  readonly open: readonly OpenRange[];
  readonly completed: number;
  readonly failed: number;
  /** No worker could send it when the file was read, and it has not been looked up again. */
  readonly undecided?: boolean;
}

/** Plan positions `[from, to)` without a complete answer. */
export interface OpenRange {
  readonly from: number;
  readonly to: number;
  /** Set where a chunk of it failed; of one line: how often alone. Decides between solo and poison. */
  readonly failures?: number;
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
