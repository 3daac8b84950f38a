import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { partIdFromBytes } from '../../core/names/ids';
import { uploadPartKey } from '../../core/names/object-names';
import type { NewPart, PartRecord, UploadRecord } from '../../storage/postgres/uploads';
import type { RouteDeps } from '../app-deps';
import { parseAddPart } from '../requests/add-part';
import { fault } from '../requests/faults';
import { receiveFile } from '../uploads/receive-file';
import { discard, discardAfter } from '../uploads/receive-form';

/**
 * `POST /uploads/{id}/parts`: each part becomes an object of its own, so parts may arrive in parallel
 * (docs/design/api-contract.md#upload-parts). @throws invalid_request, payload_too_large
 */
export async function addPart(
  request: FastifyRequest,
  { upload, deps }: { upload: UploadRecord; deps: RouteDeps },
): Promise<PartRecord> {
  const id = partIdFromBytes(randomBytes(16));
  const objectKey = uploadPartKey(upload.id, id);
  const maxFileBytes = deps.maxPartBytes;
  // OpenAI's SDKs set this header.
  const isRetry = Number(request.headers['x-stainless-retry-count'] ?? 0) > 0;
  // A retry may repeat a stored part. Only its bytes show that, so it is not refused before they arrive.
  if (!isRetry) await refuseExcessPart(upload, deps);
  const allowance = { bytes: upload.bytes, exceeded: () => exceedsDeclared(upload.bytes) };
  const form = await receiveFile(request, { deps, ...FORM, objectKey, maxFileBytes, allowance });
  try {
    const { bytes, sha256 } = parseAddPart(form);
    const createdAtSec = deps.nowSec();
    const part = { id, uploadId: upload.id, bytes, sha256, createdAtSec, isRetry };
    return await addOnce(part, { upload, deps });
  } catch (error) {
    if (form.file !== null) await discardAfter(error, { store: deps.store, objectKey });
    throw error;
  }
}

async function refuseExcessPart(upload: UploadRecord, deps: RouteDeps): Promise<void> {
  const maxParts = deps.config.limits.tenant.max_upload_parts;
  if ((await deps.uploads.countParts(upload.id)) >= maxParts) throw tooManyParts(maxParts);
}

const FORM = { field: 'data', texts: new Set<string>() };

async function addOnce(
  part: NewPart,
  { upload, deps }: { upload: UploadRecord; deps: RouteDeps },
): Promise<PartRecord> {
  const verdict = await deps.uploads.addPart(part, deps.nowSec());
  switch (verdict.kind) {
    case 'added':
      return verdict.part;
    case 'same':
      await discard({ store: deps.store, objectKey: uploadPartKey(part.uploadId, part.id) });
      return verdict.part;
    case 'exceeds':
      throw exceedsDeclared(upload.bytes);
    case 'too_many':
      throw tooManyParts(deps.config.limits.tenant.max_upload_parts);
    case 'closed':
      throw new NightshiftError(
        'invalid_request',
        'The upload is not pending, so it accepts no more parts.',
      );
  }
}

function exceedsDeclared(declaredBytes: number): NightshiftError {
  const message =
    `This part would exceed the ${declaredBytes} bytes that the upload declared. ` +
    "Create an upload with a larger 'bytes'.";
  return fault('invalid_value', 'data', message);
}

function tooManyParts(maxParts: number): NightshiftError {
  const message = `An upload can have ${maxParts} parts at most: send fewer and larger parts.`;
  return new NightshiftError('invalid_request', message, { param: 'data' });
}
