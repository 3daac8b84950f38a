import type { Pool, PoolClient } from 'pg';
import { type IdempotencyKey, isKeyTaken, type KeyPlace, type Once, once } from './idempotency';
import { type ListCursor, type Page, toPage } from './list-page';
import { type Database, inTransaction, query } from './sql';
import { admitFile, type StorageRequest, type TenantLimits } from './tenant-limits';

/** A row of `files`: an uploaded file or a result file. Times in Unix seconds. */
export interface FileRecord {
  readonly id: string;
  readonly purpose: string;
  readonly filename: string;
  readonly bytes: number;
  readonly objectKey: string;
  readonly createdAtSec: number;
  readonly expiresAtSec: number | null;
}

/** An uploaded file whose bytes are already in the object store. */
export interface NewFile extends FileRecord {
  readonly tenant: string;
  /** SHA-256 of the bytes. */
  readonly sha256: Uint8Array;
}

/** A page of a tenant's files. */
export interface FileQuery {
  readonly tenant: string;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** Id of the last file of the previous page. */
  readonly after?: string;
  readonly purpose?: string;
  readonly nowSec: number;
}

/** Identifies a file of one tenant. */
export interface FileLookUp {
  readonly id: string;
  readonly tenant: string;
  readonly nowSec: number;
}

/**
 * The rows of files. For every method, a file that was deleted, has expired or belongs to another tenant
 * does not exist (docs/design/read-model.md#files-and-uploads).
 */
export interface FileRepository {
  insert(file: NewFile): Promise<FileRecord>;
  /** Inserts the file of a request with an idempotency key. */
  insertOnce(file: NewFile, key: IdempotencyKey): Promise<Once<FileRecord>>;
  /**
   * Checks whether a file of this size would be admitted now; returns how many bytes may be stored. A
   * request whose idempotency key has created a file before is always admitted. @throws quota_exceeded
   */
  admit(request: StorageRequest, key: KeyPlace | null): Promise<number>;
  get(file: FileLookUp): Promise<FileRecord | null>;
  /**
   * Ordered by creation, then by insertion. Null if `after` names no file. A file stays valid as a cursor
   * for 24 h after it was deleted or expired, under any `purpose` (docs/design/api-contract.md#cursors).
   */
  list(page: FileQuery): Promise<Page<FileRecord> | null>;
  /** Hides a file at once; the sweep removes its bytes later. False if there is no such file. */
  hide(file: FileLookUp): Promise<boolean>;
}

const CURSOR_LIFE_SEC = 24 * 3600;

/** Columns of a {@link FileRecord}. */
export const FILE_COLUMNS = `id, purpose, filename, bytes, object_key as "objectKey",
  created_at as "createdAtSec", expires_at as "expiresAtSec"`;

/**
 * {@link FileRepository} over a pool that the caller ends. All methods: @throws postgres_unavailable;
 * inserting: @throws quota_exceeded
 */
export function createFileRepository(pool: Pool, limits: TenantLimits = {}): FileRepository {
  const insert = async (client: PoolClient, file: NewFile): Promise<FileRecord> => {
    const { tenant, bytes, createdAtSec: nowSec } = file;
    await admitFile(client, { tenant, bytes, nowSec }, limits);
    return insertFile(client, file);
  };
  return {
    insert: (file) => inTransaction(pool, (client) => insert(client, file)),
    insertOnce: (file, key) =>
      once(pool, { key, objectId: file.id }, (client) => insert(client, file)),
    admit: (request, key) =>
      inTransaction(pool, async (client) => {
        if (key !== null && (await isKeyTaken(client, key))) return Infinity;
        return admitFile(client, request, limits);
      }),
    get: (file) => getFile(pool, file),
    list: (page) => listFiles(pool, page),
    hide: (file) => hideFile(pool, file),
  };
}

/** Inserts a file, alone or within a transaction. @throws postgres_unavailable */
export async function insertFile(database: Database, file: NewFile): Promise<FileRecord> {
  await query(
    database,
    `insert into files
       (id, tenant, purpose, filename, bytes, sha256, object_key, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      file.id,
      file.tenant,
      file.purpose,
      file.filename,
      file.bytes,
      file.sha256,
      file.objectKey,
      file.createdAtSec,
      file.expiresAtSec,
    ],
  );
  const { id, purpose, filename, bytes, objectKey, createdAtSec, expiresAtSec } = file;
  return { id, purpose, filename, bytes, objectKey, createdAtSec, expiresAtSec };
}

async function getFile(pool: Pool, { id, tenant, nowSec }: FileLookUp): Promise<FileRecord | null> {
  const [row] = await query<FileRecord>(
    pool,
    `select ${FILE_COLUMNS} from files
     where id = $1 and tenant = $2 and deleted_at is null
       and (expires_at is null or expires_at > $3)`,
    [id, tenant, nowSec],
  );
  return row ?? null;
}

async function listFiles(pool: Pool, page: FileQuery): Promise<Page<FileRecord> | null> {
  const cursor = page.after === undefined ? null : await findCursor(pool, page, page.after);
  if (page.after !== undefined && cursor === null) return null;
  const comparison = page.order === 'asc' ? '>' : '<';
  const rows = await query<FileRecord>(
    pool,
    `select ${FILE_COLUMNS} from files
     where tenant = $1 and deleted_at is null and (expires_at is null or expires_at > $2)
       and ($3::text is null or purpose = $3)
       and ($4::bigint is null or (created_at, seq) ${comparison} ($4::bigint, $5::bigint))
     order by created_at ${page.order}, seq ${page.order}
     limit $6`,
    [
      page.tenant,
      page.nowSec,
      page.purpose ?? null,
      cursor?.createdAtSec ?? null,
      cursor?.seq ?? null,
      page.limit + 1,
    ],
  );
  return toPage(rows, page.limit);
}

async function findCursor(
  pool: Pool,
  { tenant, nowSec }: FileQuery,
  after: string,
): Promise<ListCursor | null> {
  const [row] = await query<ListCursor>(
    pool,
    `select created_at as "createdAtSec", seq from files
     where id = $1 and tenant = $2
       and (deleted_at is null or deleted_at > $3) and (expires_at is null or expires_at > $3)`,
    [after, tenant, nowSec - CURSOR_LIFE_SEC],
  );
  return row ?? null;
}

async function hideFile(pool: Pool, { id, tenant, nowSec }: FileLookUp): Promise<boolean> {
  const rows = await query(
    pool,
    `update files set deleted_at = $3
     where id = $1 and tenant = $2 and deleted_at is null
       and (expires_at is null or expires_at > $3)
     returning id`,
    [id, tenant, nowSec],
  );
  return rows.length > 0;
}
