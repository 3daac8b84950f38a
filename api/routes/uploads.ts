import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { uploadIdFromBytes } from '../../core/names/ids';
import { uploadPartKey } from '../../core/names/object-names';
import type { UploadRecord } from '../../storage/postgres/uploads';
import type { RouteDeps } from '../app-deps';
import { addResource } from '../../http/resource';
import { type CompleteUpload, parseCompleteUpload } from '../requests/complete-upload';
import { parseCreateUpload } from '../requests/create-upload';
import { parseUploadId } from '../requests/path-parameters';
import { parseJsonBody } from '../../http/bodies/json-body';
import { toPartObject, toUploadObject, type UploadObject } from '../objects/upload-object';
import { createKeyedMutex, type KeyedMutex } from '../uploads/keyed-mutex';
import { completeUpload } from './upload-complete';
import { addPart } from './upload-part';

const UPLOAD_LIFETIME_SEC = 3_600;
/** Bounded because each completion reads all parts, up to 8 GB. */
const MAX_REFUSED_COMPLETIONS = 20;

/** OpenAI's Uploads API: a file of up to 8 GB in parts (docs/design/api-contract.md#uploads). */
export function addUploadRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const completions = createKeyedMutex();
  addResource(app, '/uploads', { POST: (request) => createUpload(request, deps) });
  addResource(app, '/uploads/:upload_id/parts', {
    POST: async (request) => {
      const upload = requirePending(await findUpload(request, deps));
      return toPartObject(await addPart(request, { upload, deps }));
    },
  });
  addResource(app, '/uploads/:upload_id/complete', {
    POST: (request) => complete(request, { deps, completions }),
  });
  addResource(app, '/uploads/:upload_id/cancel', { POST: (request) => cancel(request, deps) });
}

async function createUpload(request: FastifyRequest, deps: RouteDeps): Promise<UploadObject> {
  const asked = parseCreateUpload(parseJsonBody(request.body));
  const createdAtSec = deps.nowSec();
  const upload = await deps.uploads.insert({
    id: uploadIdFromBytes(randomBytes(16)),
    tenant: request.tenant,
    ...asked,
    createdAtSec,
    expiresAtSec: createdAtSec + UPLOAD_LIFETIME_SEC,
  });
  request.span?.set({ 'upload.id': upload.id });
  return toUploadObject(upload, null);
}

/**
 * Completions of one upload run one at a time. An SDK repeats a completion after a timeout; the repetition
 * then waits for the first one.
 */
async function complete(
  request: FastifyRequest,
  { deps, completions }: { deps: RouteDeps; completions: KeyedMutex },
): Promise<UploadObject> {
  const { id } = lookUp(request, deps);
  return completions.runExclusive(id, async () => {
    const upload = await findUpload(request, deps);
    const asked = parseCompleteUpload(parseJsonBody(request.body));
    if (upload.status === 'completed') return replay(upload, { asked, deps });
    const failure = await completeUpload({ upload: requireCompletable(upload), asked }, deps).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (isNightshiftError(failure?.error, 'invalid_request')) await deps.uploads.noteRefusal(id);
    const ended = await findUpload(request, deps);
    // A cancel may delete the parts while they are joined. The answer then is the cancel, not the failure.
    if (failure !== null && ended.status === 'pending') throw failure.error;
    if (ended.status === 'completed') await deleteParts(ended, deps);
    return replay(ended, { asked, deps });
  });
}

/** Answers a repeated completion like the first one. @throws invalid_request for a different one */
async function replay(
  upload: UploadRecord,
  { asked, deps }: { asked: CompleteUpload; deps: RouteDeps },
): Promise<UploadObject> {
  const isSame =
    upload.partIds?.length === asked.partIds.length &&
    upload.partIds.every((id, i) => id === asked.partIds[i]);
  if (!isSame) throw notPending(upload);
  return toUploadObject(upload, await deps.uploads.fileOf(upload));
}

async function cancel(request: FastifyRequest, deps: RouteDeps): Promise<UploadObject> {
  const cancelled = await deps.uploads.cancel(lookUp(request, deps));
  const upload = await findUpload(request, deps);
  if (upload.status !== 'cancelled') throw notPending(upload);
  if (cancelled) await deleteParts(upload, deps);
  return toUploadObject(upload, null);
}

/** Deletes the objects of the parts. If that fails, the sweep deletes them later. */
async function deleteParts(upload: UploadRecord, deps: RouteDeps): Promise<void> {
  try {
    for (const part of await deps.uploads.parts(upload.id)) {
      await deps.store.delete(uploadPartKey(upload.id, part.id));
    }
  } catch (error) {
    deps.logger.warn({ err: error, uploadId: upload.id }, 'parts not removed yet');
  }
}

async function findUpload(request: FastifyRequest, deps: RouteDeps): Promise<UploadRecord> {
  const wanted = lookUp(request, deps);
  const upload = await deps.uploads.get(wanted);
  if (upload === null) throw noSuchUpload(wanted.id);
  return upload;
}

function lookUp(request: FastifyRequest, { nowSec }: RouteDeps) {
  const id = parseUploadId(request.params);
  // PostgreSQL text cannot contain NUL.
  if (id.includes('\0')) throw noSuchUpload(id);
  return { id, tenant: request.tenant, nowSec: nowSec() };
}

function requirePending(upload: UploadRecord): UploadRecord {
  if (upload.status !== 'pending') throw notPending(upload);
  return upload;
}

/** A pending upload with few refused completions. @throws invalid_request */
function requireCompletable(upload: UploadRecord): UploadRecord {
  if (requirePending(upload).refusedCompletions < MAX_REFUSED_COMPLETIONS) return upload;
  const message =
    `${MAX_REFUSED_COMPLETIONS} completions of this upload were refused, which is the limit: ` +
    'cancel it and create a new one.';
  throw new NightshiftError('invalid_request', message);
}

/** A 400 instead of a 409, because SDKs retry a 409. */
function notPending({ status }: UploadRecord): NightshiftError {
  return new NightshiftError('invalid_request', `The upload has the status '${status}'.`);
}

function noSuchUpload(id: string): NightshiftError {
  return new NightshiftError('not_found', `No such Upload object: ${id}`, { param: 'upload_id' });
}
