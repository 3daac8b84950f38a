import { z } from 'zod';

const PURPOSES = ['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'] as const;
const lifeSec = z.int().min(3_600).max(2_592_000);
const expiresAfter = z.strictObject({ anchor: z.literal('created_at'), seconds: lifeSec });
const bytes = z.string().meta({ format: 'binary' });

/** Form of `POST /files`. */
export const createFileForm = z
  .strictObject({
    file: bytes,
    purpose: z.enum(PURPOSES),
    'expires_after[anchor]': z.literal('created_at').optional(),
    'expires_after[seconds]': lifeSec.optional(),
  })
  .meta({ id: 'CreateFile' });

/** Body of `POST /uploads`. */
export const createUploadBody = z
  .strictObject({
    filename: z.string().min(1),
    purpose: z.enum(PURPOSES),
    bytes: z
      .int()
      .min(1)
      .max(8 * 1024 ** 3),
    mime_type: z.string().min(1),
    expires_after: expiresAfter.nullish(),
  })
  .meta({ id: 'CreateUpload' });

/** Form of `POST /uploads/{upload_id}/parts`: at most 64 MB. */
export const addPartForm = z.strictObject({ data: bytes }).meta({ id: 'AddUploadPart' });

/** Body of `POST /uploads/{upload_id}/complete`. */
export const completeUploadBody = z
  .strictObject({
    part_ids: z
      .array(z.string())
      .meta({ description: 'In the order of the file', uniqueItems: true }),
    md5: z
      .string()
      .regex(/^[0-9a-fA-F]{32}$/)
      .nullish()
      .meta({ description: 'Of the whole file' }),
  })
  .meta({ id: 'CompleteUpload' });

/** Body of `POST /batches`. */
export const createBatchBody = z
  .strictObject({
    input_file_id: z.string().min(1).max(255),
    endpoint: z.string(),
    completion_window: z
      .string()
      .regex(/^[1-9][0-9]*[smhd]$/)
      .meta({ description: '24h, or another duration from 1s to 30d' }),
    metadata: z
      .record(z.string().max(64), z.string().max(512))
      .nullish()
      .meta({ maxProperties: 16 }),
    output_expires_after: expiresAfter.nullish(),
  })
  .meta({ id: 'CreateBatch' });

/** Query of `GET /files`. */
export const fileListQuery = z.strictObject({
  after: z.string().min(1).optional(),
  limit: z.int().min(1).max(10_000).optional(),
  order: z.enum(['asc', 'desc']).optional(),
  purpose: z.string().min(1).optional(),
});

/** Query of `GET /batches`. */
export const batchListQuery = z.strictObject({
  after: z.string().min(1).optional(),
  limit: z.int().min(0).max(100).optional(),
});
