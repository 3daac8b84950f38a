import { randomBytes } from 'node:crypto';
import { NightshiftError } from '../../core/errors';
import { fileIdFromBytes } from '../../core/names/ids';
import { fileKey } from '../../core/names/object-names';
import { tenantHash } from '../../storage/objects/tenant-hash';
import type { NewFile } from '../../storage/postgres/files';
import type { PartRecord, UploadRecord } from '../../storage/postgres/uploads';
import type { RouteDeps } from '../app-deps';
import type { CompleteUpload } from '../requests/complete-upload';
import { wrongValue } from '../requests/faults';
import type { FileIndexer } from '../uploads/file-indexer';
import { checkBatchContent, defaultLifetimeSec } from '../uploads/file-rules';
import { joinParts, type JoinedFacts } from '../uploads/join-parts';
import { putIndex } from '../uploads/put-index';
import { discard, discardAfter } from '../uploads/receive-form';

/** A completion that a client asks for. */
export interface CompletionRequest {
  readonly upload: UploadRecord;
  readonly asked: CompleteUpload;
}

/**
 * Makes a file of the parts in their order (docs/design/api-contract.md#complete-an-upload). Returns
 * false if a cancel or another completion was faster. A refused completion leaves the upload pending.
 * @throws invalid_request
 */
export async function completeUpload(
  request: CompletionRequest,
  deps: RouteDeps,
): Promise<boolean> {
  const { purpose, bytes } = request.upload;
  const indexer = purpose === 'batch' ? deps.indexing.begin(bytes) : null;
  try {
    return await joinAndComplete(request, { deps, indexer });
  } finally {
    indexer?.close();
  }
}

async function joinAndComplete(
  { upload, asked }: CompletionRequest,
  { deps, indexer }: { readonly deps: RouteDeps; readonly indexer: FileIndexer | null },
): Promise<boolean> {
  const { store, uploads, config } = deps;
  const parts = chosenParts(await uploads.parts(upload.id), asked.partIds);
  checkTotalBytes(parts, upload);
  const withMd5 = asked.md5 !== null;
  const maxLineBytes = config.limits.max_line_bytes;
  const id = fileIdFromBytes(randomBytes(16));
  const objectKey = fileKey(tenantHash(upload.tenant), id);
  await uploads.noteJoin(upload.id, objectKey);
  const check = (facts: JoinedFacts) => checkContent(facts, { upload, asked });
  const onBytes = (chunk: Buffer): void => indexer?.update(chunk);
  const options = { store, parts, objectKey, withMd5, maxLineBytes, check, onBytes };
  const facts = await joinParts(options);
  try {
    const file = newFile({ id, objectKey, facts, upload, nowSec: deps.nowSec() });
    const completion = { uploadId: upload.id, partIds: asked.partIds, file, nowSec: deps.nowSec() };
    const isFirst = await uploads.complete(completion);
    if (isFirst) await putIndex(objectKey, indexer, deps);
    else await discard({ store, objectKey });
    return isFirst;
  } catch (error) {
    await discardAfter(error, { store, objectKey });
    throw error;
  }
}

function chosenParts(parts: readonly PartRecord[], ids: readonly string[]): PartRecord[] {
  const known = new Map(parts.map((part) => [part.id, part]));
  return ids.map((id) => {
    const part = known.get(id);
    if (part === undefined) throw wrongValue('part_ids', 'ids of parts of this upload');
    return part;
  });
}

function checkTotalBytes(parts: readonly PartRecord[], upload: UploadRecord): void {
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (bytes === upload.bytes) return;
  const message = `The parts have ${bytes} bytes in all, but the upload declared ${upload.bytes}.`;
  throw new NightshiftError('invalid_request', message, { param: 'part_ids' });
}

function checkContent(facts: JoinedFacts, { upload, asked }: CompletionRequest): void {
  if (asked.md5 !== facts.md5) {
    const message = `The MD5 of the parts is ${facts.md5 ?? ''}, not ${asked.md5 ?? ''}.`;
    throw new NightshiftError('invalid_request', message, { param: 'md5' });
  }
  if (upload.purpose === 'batch') checkBatchContent(upload.filename, facts);
}

interface JoinedFile {
  readonly id: string;
  readonly objectKey: string;
  readonly facts: JoinedFacts;
  readonly upload: UploadRecord;
  readonly nowSec: number;
}

/** A given lifetime counts from the creation of the upload, the default lifetime from now. */
function newFile({ id, objectKey, facts, upload, nowSec }: JoinedFile): NewFile {
  const { tenant, purpose, filename, fileExpiresAfterSec: given, createdAtSec } = upload;
  const defaultSec = defaultLifetimeSec(purpose);
  const defaultEndSec = defaultSec === null ? null : nowSec + defaultSec;
  const expiresAtSec = given === null ? defaultEndSec : createdAtSec + given;
  const { bytes, sha256 } = facts;
  return {
    ...{ id, tenant, purpose, filename, bytes, sha256, objectKey },
    createdAtSec: nowSec,
    expiresAtSec,
  };
}
