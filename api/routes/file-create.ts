import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../../core/errors';
import { fileIdFromBytes } from '../../core/ids';
import { fileKey } from '../../core/plan/keys';
import { tenantHash } from '../../storage/objects/tenant-hash';
import type { FileRecord } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { formBoundary } from '../multipart/form-parts';
import { malformed } from '../multipart/malformed';
import { parseCreateFile } from '../schemas/create-file';
import { discard, receiveForm, tooLongText, type ReceivedForm } from '../uploads/receive-form';

/** What the other parts of a form and its boundaries may add to the length of its file. */
const FORM_OVERHEAD_BYTES = 1024 * 1024;

/**
 * `POST /files`: the bytes go straight into the object store under the new file's own key, and are
 * taken away again where the form proves bad. @throws invalid_request, payload_too_large
 */
export async function createFile(request: FastifyRequest, deps: RouteDeps): Promise<FileRecord> {
  const boundary = formBoundary(request.headers['content-type']);
  if (boundary === null) throw malformed('expected the content type multipart/form-data');
  refuseDeclaredLength(request, deps.maxUploadBytes);
  const id = fileIdFromBytes(randomBytes(16));
  const objectKey = fileKey(tenantHash(request.tenant), id);
  const { store, files } = deps;
  const form = await receive(request, { boundary, objectKey, deps });
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

async function receive(
  request: FastifyRequest,
  { boundary, objectKey, deps }: { boundary: string; objectKey: string; deps: RouteDeps },
): Promise<ReceivedForm> {
  try {
    return await receiveForm(bodyOf(request), boundary, {
      store: deps.store,
      field: 'file',
      objectKey,
      maxFileBytes: deps.maxUploadBytes,
      maxLineBytes: deps.config.limits.max_line_bytes,
    });
  } finally {
    // Whatever the client still sends is read and dropped: a connection that is cut under an upload
    // never shows its answer, and SDKs would send the whole file again.
    request.raw.resume();
  }
}

/** The raw body. Leaving it early must not close the connection, which has to carry the answer. */
async function* bodyOf(request: FastifyRequest): AsyncGenerator<Buffer> {
  try {
    yield* request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw malformed('the connection ended before it', cause);
  }
}

function refuseDeclaredLength(request: FastifyRequest, maxBytes: number): void {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxBytes + FORM_OVERHEAD_BYTES) {
    throw new GatewayError('payload_too_large', tooLongText(maxBytes));
  }
}
