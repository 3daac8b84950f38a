import type { FileRecord } from '../../storage/postgres/files';
import type { PartRecord, UploadRecord, UploadStatus } from '../../storage/postgres/uploads';
import { type FileObject, toFileObject } from './file-object';

/** OpenAI's Upload (contract §1.7): `expires_at` is the session's end, `file` comes with completion. */
export interface UploadObject {
  readonly id: string;
  readonly object: 'upload';
  readonly bytes: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly filename: string;
  readonly purpose: string;
  readonly status: UploadStatus;
  readonly file: FileObject | null;
}

/** OpenAI's Part of an upload. */
export interface PartObject {
  readonly id: string;
  readonly object: 'upload.part';
  readonly created_at: number;
  readonly upload_id: string;
}

/** The wire form of an upload. */
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
export function toPartObject(part: PartRecord): PartObject {
  return {
    id: part.id,
    object: 'upload.part',
    created_at: part.createdAtSec,
    upload_id: part.uploadId,
  };
}
