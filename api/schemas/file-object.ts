import type { FileRecord } from '../../storage/postgres/files';

/** OpenAI's File (contract §1.3): `status` is long deprecated and still required. */
export interface FileObject {
  readonly id: string;
  readonly object: 'file';
  readonly bytes: number;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly filename: string;
  readonly purpose: string;
  readonly status: 'processed';
  readonly status_details: null;
}

/** The wire form of a file. */
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
