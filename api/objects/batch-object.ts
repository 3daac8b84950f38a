import { z } from 'zod';
import type { RequestCounts } from '../../core/batch/counts';
import { BATCH_STATUSES } from '../../core/batch/status';
import type { BatchRow } from '../../storage/postgres/batches/types';
import { counter, unixSeconds } from './values';

const batchErrors = z.strictObject({
  object: z.literal('list'),
  data: z.array(
    z.strictObject({
      code: z.string(),
      message: z.string(),
      param: z.string().nullable(),
      line: z.int().min(1).nullable(),
    }),
  ),
});

/** OpenAI's token usage of a batch; all zeros until usage is recorded. */
const usageShape = z.strictObject({
  input_tokens: counter,
  input_tokens_details: z.strictObject({ cached_tokens: counter }),
  output_tokens: counter,
  output_tokens_details: z.strictObject({ reasoning_tokens: counter }),
  total_tokens: counter,
});

/** OpenAI's Batch with every key, null when empty (docs/design/api-contract.md#batch-object). */
export const batchShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('batch'),
    endpoint: z.string(),
    model: z.string().nullable(),
    errors: batchErrors.nullable(),
    input_file_id: z.string(),
    completion_window: z.string(),
    status: z.enum(BATCH_STATUSES),
    output_file_id: z.string().nullable(),
    error_file_id: z.string().nullable(),
    created_at: unixSeconds,
    in_progress_at: unixSeconds.nullable(),
    expires_at: unixSeconds,
    finalizing_at: unixSeconds.nullable(),
    completed_at: unixSeconds.nullable(),
    failed_at: unixSeconds.nullable(),
    expired_at: unixSeconds.nullable(),
    cancelling_at: unixSeconds.nullable(),
    cancelled_at: unixSeconds.nullable(),
    request_counts: z.strictObject({ total: counter, completed: counter, failed: counter }),
    usage: usageShape,
    metadata: z.record(z.string(), z.string()).nullable(),
  })
  .meta({ id: 'Batch' });

/** A batch on the wire. */
export type BatchObject = Readonly<z.infer<typeof batchShape>>;

const NO_COUNTS: RequestCounts = { total: 0, completed: 0, failed: 0 };

/** The wire form of a batch. */
export function toBatchObject(batch: BatchRow): BatchObject {
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    errors: batch.errors as BatchObject['errors'],
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
    // The row may hold the total shortly before its status leaves `validating`.
    request_counts: batch.status === 'validating' ? NO_COUNTS : batch.counts,
    usage: toUsageObject(batch),
    metadata: batch.metadata,
  };
}

function toUsageObject({ usage }: BatchRow): BatchObject['usage'] {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.totalTokens,
  };
}
