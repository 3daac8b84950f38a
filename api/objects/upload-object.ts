import { z } from 'zod';
import type { FileRecord } from '../../storage/postgres/files';
import type { PartRecord, UploadRecord } from '../../storage/postgres/uploads';
import { fileShape, toFileObject } from './file-object';
import { counter, unixSeconds } from './values';

/** OpenAI's Upload (docs/design/api-contract.md#upload-object). */
export const uploadShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('upload'),
    bytes: counter,
    created_at: unixSeconds,
    expires_at: unixSeconds,
    filename: z.string(),
    purpose: z.string(),
    status: z.enum(['pending', 'completed', 'cancelled', 'expired']),
    file: fileShape.nullable(),
  })
  .meta({ id: 'Upload' });

/** An upload on the wire. */
export type UploadObject = Readonly<z.infer<typeof uploadShape>>;

/** OpenAI's part of an upload. */
export const partShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('upload.part'),
    created_at: unixSeconds,
    upload_id: z.string(),
  })
  .meta({ id: 'UploadPart' });

/** The wire form of an upload; `file` is the file that a completed upload became. */
export function toUploadObject(upload: UploadRecord, file: FileRecord | null): UploadObject {
  return {
    id: upload.id,
    object: 'upload',
    bytes: upload.bytes,
    created_at: upload.createdAtSec,
    expires_at: upload.expiresAtSec,
    filename: upload.filename,
    purpose: upload.purpose,
    status: upload.status,
    file: file === null ? null : toFileObject(file),
  };
}

/** The wire form of a part. */
export function toPartObject(part: PartRecord): Readonly<z.infer<typeof partShape>> {
  return {
    id: part.id,
    object: 'upload.part',
    created_at: part.createdAtSec,
    upload_id: part.uploadId,
  };
}
