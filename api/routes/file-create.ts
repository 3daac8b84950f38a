import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { fileIdFromBytes } from '../../core/names/ids';
import { fileKey } from '../../core/names/object-names';
import { tenantHash } from '../../storage/objects/tenant-hash';
import type { FileRecord, NewFile } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { idempotencyKey, keyed, objectOf } from './idempotency';
import { FILE_TEXTS, parseCreateFile } from '../requests/create-file';
import type { FileIndexer } from '../uploads/file-indexer';
import { putIndex } from '../uploads/put-index';
import { receiveFile } from '../uploads/receive-file';
import { type ByteAllowance, discard, discardAfter } from '../uploads/receive-form';

/**
 * `POST /files`: the bytes go straight into the object store under the new file's own key. If the form
 * is refused, they are deleted. @throws invalid_request, payload_too_large, quota_exceeded
 */
export async function createFile(request: FastifyRequest, deps: RouteDeps): Promise<FileRecord> {
  const indexer = deps.indexing.begin(Number(request.headers['content-length'] ?? Infinity));
  try {
    return await receiveAndInsert(request, { deps, indexer });
  } finally {
    indexer?.close();
  }
}

async function receiveAndInsert(
  request: FastifyRequest,
  { deps, indexer }: { readonly deps: RouteDeps; readonly indexer: FileIndexer | null },
): Promise<FileRecord> {
  const key = idempotencyKey(request);
  const id = fileIdFromBytes(randomBytes(16));
  const { tenant } = request;
  const objectKey = fileKey(tenantHash(tenant), id);
  const { store, maxUploadBytes: maxFileBytes } = deps;
  const allowance = await allowanceOf(request, { key, deps });
  const onBytes = (chunk: Buffer): void => indexer?.update(chunk);
  const options = { deps, ...FORM, objectKey, maxFileBytes, allowance, onBytes };
  const form = await receiveFile(request, options);
  try {
    const { expiresAfterSec, file, purpose, filename } = parseCreateFile(form);
    const { bytes, sha256 } = file;
    const fields = { purpose, filename, expiresAfterSec, bytes, sha256: sha256.toString('hex') };
    const createdAtSec = deps.nowSec();
    const expiresAtSec = expiresAfterSec === null ? null : createdAtSec + expiresAfterSec;
    const record = { id, purpose, filename, bytes, objectKey, createdAtSec, expiresAtSec };
    const made = await insert({ ...record, tenant, sha256 }, { key, fields, deps });
    // The request repeats an earlier one and gets that file, so the new bytes are not needed.
    if (made.id !== id) await discard({ store, objectKey });
    else if (purpose === 'batch') await putIndex(objectKey, indexer, deps);
    return made;
  } catch (error) {
    if (form.file !== null) await discardAfter(error, { store, objectKey });
    throw error;
  }
}

/** How much the tenant may still store, checked before the body is read. @throws quota_exceeded */
async function allowanceOf(
  { tenant }: FastifyRequest,
  { key, deps }: { key: string | null; deps: RouteDeps },
): Promise<ByteAllowance> {
  const nowSec = deps.nowSec();
  const place = key === null ? null : { tenant, route: ROUTE, key, nowSec };
  const bytes = await deps.files.admit({ tenant, bytes: 1, nowSec }, place);
  return { bytes, exceeded: () => quotaExceeded(bytes) };
}

function quotaExceeded(bytes: number): NightshiftError {
  const message =
    `The file is larger than the ${bytes} bytes that you have room for: ` +
    'delete files that you do not need.';
  return new NightshiftError('quota_exceeded', message, { apiCode: 'insufficient_quota' });
}

const ROUTE = 'POST /v1/files';
const FORM = { field: 'file', texts: FILE_TEXTS };

interface InsertContext {
  readonly key: string | null;
  /** Two requests with equal fields are the same request. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly deps: RouteDeps;
}

async function insert(file: NewFile, { key, fields, deps }: InsertContext): Promise<FileRecord> {
  const { files, nowSec } = deps;
  if (key === null) return files.insert(file);
  const { tenant } = file;
  const context = { tenant, route: ROUTE, nowSec: file.createdAtSec, fields };
  const once = await files.insertOnce(file, keyed(key, context));
  return objectOf(once, (id) => files.get({ id, tenant, nowSec: nowSec() }));
}
