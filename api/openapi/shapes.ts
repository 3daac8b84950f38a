import { z } from 'zod';
import { BATCH_STATUSES } from '../../core/batch/status';

/*
 * What the API takes and answers, as schemas: the OpenAPI document is made from them, and tests hold
 * every answer of the routes against them.
 */

const seconds = z.int().meta({ description: 'Unix seconds' });
const size = z.int().min(0);
const counter = z.int().min(0);

/** Body of every answer that is not a success (contract §4). */
export const errorShape = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: 'Error' });

/** A file (contract §1.3). */
export const fileShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('file'),
    bytes: size,
    created_at: seconds,
    expires_at: seconds.nullable(),
    filename: z.string(),
    purpose: z.string(),
    status: z.enum(['uploaded', 'processed', 'error']),
    status_details: z.string().nullable(),
  })
  .meta({ id: 'File' });

/** The answer to the deletion of a file. */
export const deletedFileShape = z
  .strictObject({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) })
  .meta({ id: 'DeletedFile' });

/** An upload in parts (contract §1.7). */
export const uploadShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('upload'),
    bytes: size,
    created_at: seconds,
    expires_at: seconds,
    filename: z.string(),
    purpose: z.string(),
    status: z.enum(['pending', 'completed', 'cancelled', 'expired']),
    file: fileShape.nullable(),
  })
  .meta({ id: 'Upload' });

/** One part of an upload. */
export const partShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('upload.part'),
    created_at: seconds,
    upload_id: z.string(),
  })
  .meta({ id: 'UploadPart' });

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

/** A batch with every key (contract §2.2). */
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
    created_at: seconds,
    in_progress_at: seconds.nullable(),
    expires_at: seconds,
    finalizing_at: seconds.nullable(),
    completed_at: seconds.nullable(),
    failed_at: seconds.nullable(),
    expired_at: seconds.nullable(),
    cancelling_at: seconds.nullable(),
    cancelled_at: seconds.nullable(),
    request_counts: z.strictObject({ total: counter, completed: counter, failed: counter }),
    usage: z.strictObject({
      input_tokens: counter,
      input_tokens_details: z.strictObject({ cached_tokens: counter }),
      output_tokens: counter,
      output_tokens_details: z.strictObject({ reasoning_tokens: counter }),
      total_tokens: counter,
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
  })
  .meta({ id: 'Batch' });

/** A page of a list (contract §1.4). */
export const listShape = <T extends z.ZodType>(item: T, id: string) =>
  z
    .strictObject({
      object: z.literal('list'),
      data: z.array(item),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    })
    .meta({ id });
