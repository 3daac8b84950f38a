import { forEachConcurrently } from '../../../core/async/for-each-concurrently';
import { NightshiftError } from '../../../core/errors';
import type { JoinInspector, PutResult } from '../../object-store';
import { newObject } from './conditional-write';
import { lookUpExisting } from './look-up';
import { MultipartUpload, type CopiedPart } from './multipart-upload';
import { chunksOf, ObjectBytes } from './object-bytes';
import type { ObjectWriter } from './put-object';
import type { S3Bucket } from './s3-bucket';
import { hasName, missingObject, s3Error, statusOf } from './s3-errors';

/** Limits of S3: every part but the last has at least 5 MiB, a copied one at most 5 GiB. */
const MIN_PART_BYTES = 5 * 1024 ** 2;
const MAX_COPY_BYTES = 5 * 1024 ** 3;
const MAX_PARTS = 10_000;
/** Copies and look-ups at the same time. */
const CONCURRENCY = 8;

/** Objects to join, in their order. */
export interface ObjectsToJoin {
  readonly key: string;
  readonly parts: readonly string[];
  readonly inspector?: JoinInspector | undefined;
}

/** An object to join, and its place among those that the caller named. */
interface FoundPart extends CopiedPart {
  readonly index: number;
}

/**
 * Joins objects into a new one. S3 copies them if their sizes allow it, and their bytes reach this process
 * only to be inspected; otherwise they are streamed through it.
 * @throws object_missing, object_store_failed, and what the inspector throws
 */
export async function concatenateObjects(
  bucket: S3Bucket,
  writer: ObjectWriter,
  { key, parts, inspector }: ObjectsToJoin,
): Promise<PutResult> {
  bucket.at(key);
  const found = await inOrder(parts, async (part, index) => ({
    key: part,
    index,
    ...(await lookUpExisting(bucket, part)),
  }));
  const filled = found.filter(({ size }) => size > 0);
  if (!canCopy(filled)) return writer.putIfAbsent(key, streamed(bucket, filled, inspector));
  if (inspector !== undefined) await readAll(streamed(bucket, filled, inspector));
  const copied = await copyOnServer(bucket, key, filled);
  if (copied !== 'not supported') return copied;
  return writer.putIfAbsent(key, streamed(bucket, filled));
}

function canCopy(parts: readonly CopiedPart[]): boolean {
  return (
    parts.length > 0 &&
    parts.length <= MAX_PARTS &&
    parts.every(({ size }) => size <= MAX_COPY_BYTES) &&
    parts.slice(0, -1).every(({ size }) => size >= MIN_PART_BYTES)
  );
}

async function copyOnServer(
  bucket: S3Bucket,
  key: string,
  parts: readonly CopiedPart[],
): Promise<PutResult | 'not supported'> {
  const upload = await MultipartUpload.begin(bucket, newObject(key), { copies: true });
  try {
    await inOrder(parts, (part, index) => upload.copy(index + 1, part));
  } catch (error) {
    await upload.abort();
    if (statusOf(error) === 501) return 'not supported';
    if (hasName(error, 'NoSuchKey')) throw missingObject(`among the parts of ${key}`, error);
    throw s3Error(error, `join ${key}`, bucket);
  }
  try {
    return await upload.complete();
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

async function* streamed(
  bucket: S3Bucket,
  parts: readonly FoundPart[],
  inspector?: JoinInspector,
): AsyncGenerator<Uint8Array> {
  for (const { key, index, size, etag } of parts) {
    const bytes = new ObjectBytes(bucket, { key, range: { from: 0, to: size }, etag });
    let done = 0;
    for await (const chunk of chunksOf(bytes)) {
      done += chunk.length;
      inspector?.update(chunk, index);
      yield chunk;
    }
    if (done === size) continue;
    const message = `read ${key}: it has ${done} bytes instead of ${size}`;
    throw new NightshiftError('object_store_failed', message);
  }
  inspector?.finish();
}

async function readAll(chunks: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of chunks) void chunk;
}

/** Runs `work` for all items, a few at a time, and keeps their order. Starts none after a failure. */
async function inOrder<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  await forEachConcurrently(items.entries(), CONCURRENCY, async ([index, item]) => {
    results[index] = await work(item, index);
  });
  return results;
}
