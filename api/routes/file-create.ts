import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { fileIdFromBytes } from '../../core/ids';
import { fileKey } from '../../core/plan/keys';
import { tenantHash } from '../../storage/objects/tenant-hash';
import type { FileRecord } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { parseCreateFile } from '../schemas/create-file';
import { receiveFile } from '../uploads/receive-file';
import { discard } from '../uploads/receive-form';

/**
 * `POST /files`: the bytes go straight into the object store under the new file's own key, and are
 * taken away again where the form proves bad. @throws invalid_request, payload_too_large
 */
export async function createFile(request: FastifyRequest, deps: RouteDeps): Promise<FileRecord> {
  const id = fileIdFromBytes(randomBytes(16));
  const objectKey = fileKey(tenantHash(request.tenant), id);
  const { store, files, maxUploadBytes: maxFileBytes } = deps;
  const form = await receiveFile(request, { deps, field: 'file', objectKey, maxFileBytes });
  try {
    const { purpose, filename, expiresAfterSec, file } = parseCreateFile(form);
    const createdAtSec = deps.nowSec();
    const expiresAtSec = expiresAfterSec === null ? null : createdAtSec + expiresAfterSec;
    const { bytes, sha256 } = file;
    const record = { id, purpose, filename, bytes, objectKey, createdAtSec, expiresAtSec };
    await files.insert({ ...record, tenant: request.tenant, sha256 });
    deps.metrics.fileStorageOperations.inc(COUNTED);
    return record;
  } catch (error) {
    if (form.file !== null) await discard({ store, objectKey });
    throw error;
  }
}

const COUNTED = { operation: 'store', component: 'api', status: 'success' };
