import type { BatchStatus } from '../../core/batch/status';
import type { RequestCounts } from '../../core/batch/counts';
import type { BatchRow } from '../../storage/postgres/batches/types';

/** OpenAI's Batch with every key, null when empty (contract §2.2). */
export interface BatchObject {
  readonly id: string;
  readonly object: 'batch';
  readonly endpoint: string;
  readonly model: string | null;
  readonly errors: unknown;
  readonly input_file_id: string;
  readonly completion_window: string;
  readonly status: BatchStatus;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly created_at: number;
  readonly in_progress_at: number | null;
  readonly expires_at: number;
  readonly finalizing_at: number | null;
  readonly completed_at: number | null;
  readonly failed_at: number | null;
  readonly expired_at: number | null;
  readonly cancelling_at: number | null;
  readonly cancelled_at: number | null;
  readonly request_counts: RequestCounts;
  readonly usage: UsageObject;
  readonly metadata: Readonly<Record<string, string>> | null;
}

/** OpenAI's token usage of a batch; zeros while there is none. */
export interface UsageObject {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

const NO_COUNTS: RequestCounts = { total: 0, completed: 0, failed: 0 };

/** The wire form of a batch. */
export function toBatchObject(batch: BatchRow): BatchObject {
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    errors: batch.errors,
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: batch.createdAtSec,
    in_progress_at: batch.inProgressAtSec,
    expires_at: batch.expiresAtSec,
    finalizing_at: batch.finalizingAtSec,
    completed_at: batch.completedAtSec,
    failed_at: batch.failedAtSec,
    expired_at: batch.expiredAtSec,
    cancelling_at: batch.cancellingAtSec,
    cancelled_at: batch.cancelledAtSec,
    // The row may know its total a moment before it says that validation has ended.
    request_counts: batch.status === 'validating' ? NO_COUNTS : batch.counts,
    usage: toUsageObject(batch),
    metadata: batch.metadata,
  };
}

function toUsageObject({ usage }: BatchRow): UsageObject {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.totalTokens,
  };
}
