import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../../core/errors';
import { partIdFromBytes } from '../../core/ids';
import { uploadPartKey } from '../../core/plan/keys';
import type { NewPart, PartRecord, UploadRecord } from '../../storage/postgres/uploads';
import type { RouteDeps } from '../app-deps';
import { fault, missing, unknownParameter, wrongType } from '../schemas/faults';
import { receiveFile } from '../uploads/receive-file';
import { discard, discardAfter, type ReceivedForm } from '../uploads/receive-form';

/**
 * `POST /uploads/{id}/parts`: the part's bytes become an object of their own, many at a time. A part
 * that would exceed the declared size is refused, unless it is sent again: then the part with its bytes
 * that is already there is the answer. @throws invalid_request, payload_too_large
 */
export async function addPart(
  request: FastifyRequest,
  { upload, deps }: { upload: UploadRecord; deps: RouteDeps },
): Promise<PartRecord> {
  const id = partIdFromBytes(randomBytes(16));
  const objectKey = uploadPartKey(upload.id, id);
  const maxFileBytes = deps.maxPartBytes;
  const form = await receiveFile(request, { deps, ...FORM, objectKey, maxFileBytes });
  try {
    const { bytes, sha256 } = onlyData(form);
    const createdAtSec = deps.nowSec();
    const isRetry = Number(request.headers['x-stainless-retry-count'] ?? 0) > 0;
    const part = { id, uploadId: upload.id, bytes, sha256, createdAtSec };
    return await take(part, { deps, isRetry });
  } catch (error) {
    if (form.file !== null) await discardAfter(error, { store: deps.store, objectKey });
    throw error;
  }
}

const FORM = { field: 'data', texts: new Set<string>() };

interface Taking {
  readonly deps: RouteDeps;
  /** Whether the client says that it has sent this before; SDKs do (contract §4). */
  readonly isRetry: boolean;
}

async function take(part: NewPart, { deps, isRetry }: Taking): Promise<PartRecord> {
  const verdict = await deps.uploads.addPart(part, deps.nowSec());
  switch (verdict.kind) {
    case 'added': {
      const { id, uploadId, bytes, createdAtSec } = verdict.part;
      return { id, uploadId, bytes, createdAtSec };
    }
    case 'same':
      if (!isRetry) throw exceeds();
      await discard({ store: deps.store, objectKey: uploadPartKey(part.uploadId, part.id) });
      return verdict.part;
    case 'exceeds':
      throw exceeds();
    case 'closed':
      throw new GatewayError('invalid_request', 'The upload does not take parts any more.');
  }
}

function onlyData({ fields, file }: ReceivedForm) {
  if (file === null) throw fields.has('data') ? wrongType('data', 'a file') : missing('data');
  const [unknown] = fields.keys();
  if (unknown !== undefined) throw unknownParameter(unknown);
  return file;
}

function exceeds(): GatewayError {
  const message = "The parts would be longer than the upload's declared 'bytes'.";
  return fault('invalid_value', 'data', message);
}
