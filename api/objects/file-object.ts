import { z } from 'zod';
import type { FileRecord } from '../../storage/postgres/files';
import { counter, unixSeconds } from './values';

/** OpenAI's File (docs/design/api-contract.md#file-object). */
export const fileShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('file'),
    bytes: counter,
    created_at: unixSeconds,
    expires_at: unixSeconds.nullable(),
    filename: z.string(),
    purpose: z.string(),
    status: z.enum(['uploaded', 'processed', 'error']),
    status_details: z.string().nullable(),
  })
  .meta({ id: 'File' });

/** A file on the wire. */
export type FileObject = Readonly<z.infer<typeof fileShape>>;

/** The answer to the deletion of a file. */
export const deletedFileShape = z
  .strictObject({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) })
  .meta({ id: 'DeletedFile' });

/** The wire form of a file. OpenAI deprecated `status`, but SDKs still require it. */
export function toFileObject(file: FileRecord): FileObject {
  return {
    id: file.id,
    object: 'file',
    bytes: file.bytes,
    created_at: file.createdAtSec,
    expires_at: file.expiresAtSec,
    filename: file.filename,
    purpose: file.purpose,
    status: 'processed',
    status_details: null,
  };
}
