import type { Pool, PoolClient } from 'pg';
import { FILE_COLUMNS, insertFile, type FileRecord, type NewFile } from './files';
import { type Database, inTransaction, query } from './sql';
import { admitUpload, type TenantLimits } from './tenant-limits';

/** Status of an upload; `expired` if `expiresAtSec` passed while it was pending. */
export type UploadStatus = 'pending' | 'completed' | 'cancelled' | 'expired';

/** A row of `uploads`. Times in Unix seconds. */
export interface UploadRecord {
  readonly id: string;
  readonly tenant: string;
  readonly filename: string;
  readonly purpose: string;
  /** As declared when it was created. */
  readonly bytes: number;
  /** Life of the file from the creation of the upload, seconds; null means the default of its purpose. */
  readonly fileExpiresAfterSec: number | null;
  readonly status: UploadStatus;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  /** Parts of the completed file in order; null before completion. */
  readonly partIds: readonly string[] | null;
  readonly fileId: string | null;
  /** Completions that were refused because of the client's request. */
  readonly refusedCompletions: number;
}

/** An upload to be inserted as `pending`. */
export interface NewUpload extends Omit<
  UploadRecord,
  'status' | 'partIds' | 'fileId' | 'refusedCompletions'
> {
  readonly mimeType: string;
}

/** One part whose bytes are in the object store. Times in Unix seconds. */
export interface PartRecord {
  readonly id: string;
  readonly uploadId: string;
  readonly bytes: number;
  readonly createdAtSec: number;
}

/** A part to be added to its upload. */
export interface NewPart extends PartRecord {
  /** SHA-256 of the bytes. */
  readonly sha256: Uint8Array;
  /** Whether the client marked the part as a retry: it has sent these bytes before. */
  readonly isRetry: boolean;
}

/** Identifies an upload of one tenant. */
export interface UploadLookUp {
  readonly id: string;
  readonly tenant: string;
  readonly nowSec: number;
}

/**
 * The outcome of adding a part: `added`; `same` if it would exceed the declared size and is a retry of
 * `part`, which is already stored; `exceeds` if it would exceed the declared size and is no such retry;
 * `too_many` if the upload has the maximum number of parts; `closed` if the upload is not pending.
 */
export type PartVerdict =
  | { readonly kind: 'added' | 'same'; readonly part: PartRecord }
  | { readonly kind: 'exceeds' | 'too_many' | 'closed' };

/** A completed file to be inserted, and the parts that it was joined from. */
export interface Completion {
  readonly uploadId: string;
  readonly partIds: readonly string[];
  readonly file: NewFile;
  readonly nowSec: number;
}

/**
 * The rows of uploads and their parts. An upload does not exist for other tenants
 * (docs/design/read-model.md#upload-rows).
 */
export interface UploadRepository {
  insert(upload: NewUpload): Promise<UploadRecord>;
  get(upload: UploadLookUp): Promise<UploadRecord | null>;
  /** Adds a part, if the upload still takes parts and its declared size allows it. */
  addPart(part: NewPart, nowSec: number): Promise<PartVerdict>;
  /** Number of its parts. */
  countParts(uploadId: string): Promise<number>;
  /** Parts in order of creation. */
  parts(uploadId: string): Promise<PartRecord[]>;
  /** Counts one more refused completion. */
  noteRefusal(uploadId: string): Promise<void>;
  /** Notes the object that a completion is about to write, so that the sweep finds it after a crash. */
  noteJoin(uploadId: string, objectKey: string): Promise<void>;
  /** Inserts the file and ends the upload; false if another completion or a cancel was first. */
  complete(completion: Completion): Promise<boolean>;
  /** Ends a pending upload; false if it is not pending. */
  cancel(upload: UploadLookUp): Promise<boolean>;
  /** The file of a completed upload, even if it was deleted since; null once its row is removed. */
  fileOf(upload: UploadRecord): Promise<FileRecord | null>;
}

/** Most bytes that the parts of an upload may take in the store, as a multiple of its declared size. */
const STORED_FACTOR = 2;

const STATUS = `case when status = 'pending' and expires_at <= $2 then 'expired' else status end`;
const UPLOAD_COLUMNS = `id, tenant, filename, purpose, bytes,
  file_expires_after as "fileExpiresAfterSec", ${STATUS} as status, created_at as "createdAtSec",
  expires_at as "expiresAtSec", part_ids as "partIds", file_id as "fileId",
  refused_completions as "refusedCompletions"`;
const PART_COLUMNS = `id, upload_id as "uploadId", bytes, created_at as "createdAtSec"`;

/**
 * {@link UploadRepository} over a pool that the caller ends. All methods: @throws postgres_unavailable;
 * inserting: @throws quota_exceeded
 */
export function createUploadRepository(pool: Pool, limits: TenantLimits = {}): UploadRepository {
  return {
    insert: (upload) =>
      inTransaction(pool, async (client) => {
        const { tenant, bytes, createdAtSec: nowSec } = upload;
        await admitUpload(client, { tenant, bytes, nowSec }, limits);
        return insertUpload(client, upload);
      }),
    get: (upload) => getUpload(pool, upload),
    addPart: (part, nowSec) =>
      inTransaction(pool, (client) => addPart(client, part, { nowSec, limits })),
    countParts: async (uploadId) => {
      const text = `select count(*) as count from upload_parts where upload_id = $1`;
      const [parts] = await query<{ count: number }>(pool, text, [uploadId]);
      return parts?.count ?? 0;
    },
    noteRefusal: async (uploadId) => {
      const text = `update uploads set refused_completions = refused_completions + 1 where id = $1`;
      await query(pool, text, [uploadId]);
    },
    parts: (uploadId) => partsOf(pool, uploadId),
    noteJoin: async (uploadId, objectKey) => {
      const text = `update uploads set joined_keys = array_append(joined_keys, $2) where id = $1`;
      await query(pool, text, [uploadId, objectKey]);
    },
    complete: (completion) => inTransaction(pool, (client) => complete(client, completion)),
    cancel: (upload) => cancel(pool, upload),
    fileOf: (upload) => fileOf(pool, upload),
  };
}

async function insertUpload(client: PoolClient, upload: NewUpload): Promise<UploadRecord> {
  const { mimeType, ...record } = upload;
  await query(
    client,
    `insert into uploads
       (id, tenant, filename, purpose, mime_type, bytes, file_expires_after, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      record.id,
      record.tenant,
      record.filename,
      record.purpose,
      mimeType,
      record.bytes,
      record.fileExpiresAfterSec,
      record.createdAtSec,
      record.expiresAtSec,
    ],
  );
  return { ...record, status: 'pending', partIds: null, fileId: null, refusedCompletions: 0 };
}

async function getUpload(
  pool: Pool,
  { id, tenant, nowSec }: UploadLookUp,
): Promise<UploadRecord | null> {
  const [row] = await query<UploadRecord>(
    pool,
    `select ${UPLOAD_COLUMNS} from uploads where id = $1 and tenant = $3`,
    [id, nowSec, tenant],
  );
  return row ?? null;
}

async function addPart(
  client: PoolClient,
  part: NewPart,
  { nowSec, limits }: { nowSec: number; limits: TenantLimits },
): Promise<PartVerdict> {
  // The lock makes concurrent parts count one after the other, and refuses parts once the upload has ended.
  const [upload] = await query<{ status: UploadStatus; bytes: number }>(
    client,
    `select ${STATUS} as status, bytes from uploads where id = $1 for update`,
    [part.uploadId, nowSec],
  );
  if (upload?.status !== 'pending') return { kind: 'closed' };
  const verdict = await checkFit(client, part, { maxBytes: upload.bytes, ...limits });
  if (verdict !== 'fits') {
    const same = part.isRetry ? await samePart(client, part) : null;
    return same === null ? { kind: verdict } : { kind: 'same', part: same };
  }
  await query(
    client,
    `insert into upload_parts (id, upload_id, bytes, sha256, created_at, is_retry)
     values ($1, $2, $3, $4, $5, $6)`,
    [part.id, part.uploadId, part.bytes, part.sha256, part.createdAtSec, part.isRetry],
  );
  const { id, uploadId, bytes, createdAtSec } = part;
  return { kind: 'added', part: { id, uploadId, bytes, createdAtSec } };
}

/**
 * The first attempt at a part may have succeeded although its response was lost. A retry therefore does not
 * count towards the declared size again. The bytes that retries take in the store have their own limit.
 */
async function checkFit(
  client: PoolClient,
  part: NewPart,
  { maxBytes, maxUploadParts = Infinity }: TenantLimits & { maxBytes: number },
): Promise<'fits' | 'exceeds' | 'too_many'> {
  const [sums] = await query<{ counted: number; stored: number; parts: number }>(
    client,
    `select coalesce(sum(counted), 0)::bigint as counted, coalesce(sum(stored), 0)::bigint as stored,
       coalesce(sum(parts), 0)::bigint as parts
     from (
       select bytes * greatest(count(*) filter (where not is_retry), 1) as counted,
         sum(bytes) as stored, count(*) as parts
       from (
         select bytes, sha256, is_retry from upload_parts where upload_id = $1
         union all select $2::bigint, $3::bytea, $4::boolean) part
       group by bytes, sha256) content`,
    [part.uploadId, part.bytes, part.sha256, part.isRetry],
  );
  const { counted, stored, parts } = sums ?? { counted: 0, stored: 0, parts: 0 };
  if (parts > maxUploadParts) return 'too_many';
  return counted <= maxBytes && stored <= STORED_FACTOR * maxBytes ? 'fits' : 'exceeds';
}

async function samePart(client: PoolClient, part: NewPart): Promise<PartRecord | null> {
  const [same] = await query<PartRecord>(
    client,
    `select ${PART_COLUMNS} from upload_parts
     where upload_id = $1 and bytes = $2 and sha256 = $3 order by created_at, id limit 1`,
    [part.uploadId, part.bytes, part.sha256],
  );
  return same ?? null;
}

function partsOf(database: Database, uploadId: string): Promise<PartRecord[]> {
  return query<PartRecord>(
    database,
    `select ${PART_COLUMNS} from upload_parts where upload_id = $1 order by created_at, id`,
    [uploadId],
  );
}

async function complete(client: PoolClient, completion: Completion): Promise<boolean> {
  const { uploadId, partIds, file, nowSec } = completion;
  // A completion that began in time succeeds even if the upload expired while its parts were joined.
  const rows = await query(
    client,
    `update uploads set status = 'completed', ended_at = $2, part_ids = $3, file_id = $4
     where id = $1 and status = 'pending' returning id`,
    [uploadId, nowSec, partIds, file.id],
  );
  if (rows.length === 0) return false;
  await insertFile(client, file);
  return true;
}

async function cancel(pool: Pool, { id, tenant, nowSec }: UploadLookUp): Promise<boolean> {
  const rows = await query(
    pool,
    `update uploads set status = 'cancelled', ended_at = $2
     where id = $1 and tenant = $3 and status = 'pending' and expires_at > $2 returning id`,
    [id, nowSec, tenant],
  );
  return rows.length > 0;
}

async function fileOf(pool: Pool, { fileId }: UploadRecord): Promise<FileRecord | null> {
  const [row] = await query<FileRecord>(pool, `select ${FILE_COLUMNS} from files where id = $1`, [
    fileId,
  ]);
  return row ?? null;
}
